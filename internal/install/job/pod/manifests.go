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
func (p *installerRun) patchManifests(encoded []byte) error {
	list, err := config.DecodeManifestPatches(encoded)
	if err != nil {
		return err
	}
	for _, m := range list {
		for i, patches := range m.Patches {
			p.hidePatchSecrets(patches.Patches)
			if err := p.patchSelectedManifests(m, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *installerRun) patchSelectedManifests(m config.ManifestPatches, i int) error {
	names, err := p.listManifests(m.Patches[i].ManifestSelector.Glob)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return m.NoManifestError(i)
	}
	for _, name := range names {
		before, err := os.ReadFile(p.clusterFilePath(name))
		if err != nil {
			return fmt.Errorf("reading manifest %s: %w", name, err)
		}
		after, err := m.PatchManifest(i, name, before)
		if err != nil {
			return err
		}
		if err := p.writeClusterFile(name, after); err != nil {
			return err
		}
	}
	return nil
}

// listManifests returns the files in the installer's folder that a glob selects. A glob also
// matches folders; they are not manifests and are left out.
func (p *installerRun) listManifests(glob string) ([]string, error) {
	folder := os.DirFS(p.clusterDir())
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
func (p *installerRun) hidePatchSecrets(patches []hivev1.PatchEntity) {
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
			p.log.addKnownSecret(secret)
		}
	}
}
