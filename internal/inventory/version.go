package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// CustomizationVersion returns the version of a customization: 16 hexadecimal digits, a hash of its
// patches. It changes only if the patches change, not if the object is otherwise written or
// restored from a backup, as its resourceVersion and its UID would. It hashes only the lists that
// are set, so that a new list in the API does not change any version.
func CustomizationVersion(spec hivev1.ClusterDeploymentCustomizationSpec) (string, error) {
	shape := map[string]any{}
	add := func(key string, list any, n int) {
		if n > 0 {
			shape[key] = list
		}
	}
	add("installConfigPatches", spec.InstallConfigPatches, len(spec.InstallConfigPatches))
	add("clusterDeploymentSpecPatches", spec.ClusterDeploymentSpecPatches, len(spec.ClusterDeploymentSpecPatches))
	add("installerManifestPatches", spec.InstallerManifestPatches, len(spec.InstallerManifestPatches))
	raw, err := json.Marshal(shape)
	if err != nil {
		return "", fmt.Errorf("encoding a customization: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:16], nil
}
