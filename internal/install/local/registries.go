package local

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/fault"
)

// registryAccess is the part of an install-config with which a cluster pulls images.
type registryAccess struct {
	PullSecret  string `json:"pullSecret"`
	TrustBundle string `json:"additionalTrustBundle"`
}

// parseRegistryAccess parses the part of an install-config with which a cluster pulls images. A value
// that is no text counts as absent. The error is fault.Denied and does not quote the install-config.
func parseRegistryAccess(raw []byte) (registryAccess, error) {
	var document struct {
		PullSecret  any `json:"pullSecret"`
		TrustBundle any `json:"additionalTrustBundle"`
	}
	if yaml.Unmarshal(raw, &document) != nil {
		return registryAccess{}, fault.NewDenied("install-config.yaml is not a YAML mapping")
	}
	var a registryAccess
	a.PullSecret, _ = document.PullSecret.(string)
	a.TrustBundle, _ = document.TrustBundle.(string)
	return a, nil
}

// writeRegistryAccess writes what the control plane needs to pull images.
func (i *Installer) writeRegistryAccess(f folder, leader machine.Config) error {
	raw, err := os.ReadFile(f.configPath())
	if err != nil {
		return fmt.Errorf("reading the install-config: %w", err)
	}
	access, err := parseRegistryAccess(raw)
	if err != nil {
		return err
	}
	dir := i.store.MachineDir(leader.InfraID, leader.Name)
	for path, content := range map[string]string{
		machine.PullSecretPath(dir): access.PullSecret, machine.TrustBundlePath(dir): access.TrustBundle,
	} {
		if content == "" {
			continue
		}
		if err := pki.WriteFile(path, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}
