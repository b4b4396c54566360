package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/install"
)

// folder is the working folder of one installation, in the layout of openshift-install's. All files
// are accessible only to their owner.
type folder string

func (f folder) configPath() string     { return filepath.Join(string(f), "install-config.yaml") }
func (f folder) metadataPath() string   { return filepath.Join(string(f), "metadata.json") }
func (f folder) kubeconfigPath() string { return filepath.Join(string(f), "auth", "kubeconfig") }
func (f folder) passwordPath() string   { return filepath.Join(string(f), "auth", "kubeadmin-password") }

func (f folder) tokenPath() string { return filepath.Join(string(f), "auth", "bootstrap-token") }

func (f folder) logPath() string        { return filepath.Join(string(f), ".openshift_install.log") }
func (f folder) completionPath() string { return filepath.Join(string(f), "complete.json") }

// completion is complete.json. It is written last: if it exists, everything else does.
type completion struct {
	APIURL  string `json:"apiURL"`
	Version string `json:"version"`
}

func (f folder) readConfig() (config, error) {
	raw, err := os.ReadFile(f.configPath())
	if err != nil {
		return config{}, fmt.Errorf("reading the install-config: %w", err)
	}
	return parseInstallConfig(raw)
}

// readMetadata returns the metadata of the installation. The error is fs.ErrNotExist if it has no
// name yet.
func (f folder) readMetadata() (metadata, error) {
	raw, err := os.ReadFile(f.metadataPath())
	if err != nil {
		return metadata{}, fmt.Errorf("reading the metadata: %w", err)
	}
	return parseMetadata(raw)
}

// ensureMetadata returns the metadata of the installation, and names the installation if it has no
// name. The name is on disk before anything uses it.
func (f folder) ensureMetadata(c config) (metadata, error) {
	md, err := f.readMetadata()
	if !errors.Is(err, fs.ErrNotExist) {
		return md, err
	}
	md = newMetadata(c)
	raw, err := md.encodeJSON()
	if err != nil {
		return md, err
	}
	return md, pki.WriteFile(f.metadataPath(), raw)
}

func (f folder) writeCompletion(c completion) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return pki.WriteFile(f.completionPath(), raw)
}

// readResult returns the result of a finished installation; false if it is not finished.
func (f folder) readResult() (install.Result, bool, error) {
	raw, err := os.ReadFile(f.completionPath())
	if errors.Is(err, fs.ErrNotExist) {
		return install.Result{}, false, nil
	}
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	var c completion
	if err := json.Unmarshal(raw, &c); err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	kubeconfig, err := os.ReadFile(f.kubeconfigPath())
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	password, err := os.ReadFile(f.passwordPath())
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	return install.Result{
		Phase: install.Succeeded, Kubeconfig: kubeconfig, Password: string(password), APIURL: c.APIURL, Version: c.Version,
	}, true, nil
}

// readLogSecrets returns the secrets that must not appear in an excerpt of the log.
func (f folder) readLogSecrets() []string {
	var secrets []string
	for _, path := range []string{f.passwordPath(), f.tokenPath()} {
		if raw, err := os.ReadFile(path); err == nil { // a secret that was never created cannot have been printed
			secrets = append(secrets, string(raw))
		}
	}
	return secrets
}

// existsOnDisk reports whether the folder exists.
func (f folder) existsOnDisk() bool {
	_, err := os.Stat(string(f))
	return !errors.Is(err, fs.ErrNotExist)
}
