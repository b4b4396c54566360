package pod

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
)

// patchManifests applies a cluster's patches to the manifests in the installer's folder, including
// added manifests. If the patches are wrong, the error is fault.Denied.
func (r *installerRun) patchManifests(encoded []byte) error {
	list, err := config.DecodeManifestPatches(encoded)
	if err != nil {
		return err
	}
	for _, m := range list {
		for i, patches := range m.Patches {
			r.hidePatchSecrets(patches.Patches)
			if err := r.patchSelectedManifests(m, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *installerRun) patchSelectedManifests(m config.ManifestPatches, i int) error {
	names, err := r.listManifests(m.Patches[i].ManifestSelector.Glob)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return m.NoManifestError(i)
	}
	for _, name := range names {
		before, err := os.ReadFile(r.clusterFilePath(name))
		if err != nil {
			return fmt.Errorf("reading manifest %s: %w", name, err)
		}
		after, err := m.PatchManifest(i, name, before)
		if err != nil {
			return err
		}
		if err := r.writeClusterFile(name, after); err != nil {
			return err
		}
	}
	return nil
}

// listManifests returns the files in the installer's folder that a glob selects. A glob also
// matches folders; they are not manifests and are left out.
func (r *installerRun) listManifests(glob string) ([]string, error) {
	folder := os.DirFS(r.clusterDir())
	names, err := fs.Glob(folder, glob)
	if err != nil {
		return nil, fmt.Errorf("finding manifests: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := fs.Stat(folder, name)
		return err == nil && info.IsDir()
	}), nil
}

// hidePatchSecrets registers patch values as secrets to keep out of the log, if a key in them, or the
// last part of the patch's path, is named like a secret.
func (r *installerRun) hidePatchSecrets(patches []hivev1.PatchEntity) {
	for _, patch := range patches {
		value := json.RawMessage(patch.ValueJSON)
		if len(value) == 0 && patch.Value != nil {
			value = patch.Value.Raw
		}
		raw, err := json.Marshal(map[string]json.RawMessage{patch.Path[strings.LastIndex(patch.Path, "/")+1:]: value})
		if err != nil {
			continue // it is not JSON, so it is not applied
		}
		for _, secret := range findFileSecrets("", raw) {
			r.log.addKnownSecret(secret)
		}
	}
}
