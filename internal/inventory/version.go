package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// CustomizationVersion is the version of a customization: 16 hexadecimal digits over its patches.
// It changes when they do, and not when the object is written for another reason or
// restored from a backup, as its resourceVersion and its uid would. It is computed
// over the lists that are set, so that a new one in the API changes no version.
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
