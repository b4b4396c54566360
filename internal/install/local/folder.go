package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/pki"
)

// folder is the working folder of one installation, as openshift-install's. All
// files are for their owner only.
type folder string

func (f folder) config() string     { return filepath.Join(string(f), "install-config.yaml") }
func (f folder) metadata() string   { return filepath.Join(string(f), "metadata.json") }
func (f folder) kubeconfig() string { return filepath.Join(string(f), "auth", "kubeconfig") }
func (f folder) password() string   { return filepath.Join(string(f), "auth", "kubeadmin-password") }
func (f folder) token() string      { return filepath.Join(string(f), "auth", "bootstrap-token") }
func (f folder) log() string        { return filepath.Join(string(f), ".openshift_install.log") }
func (f folder) complete() string   { return filepath.Join(string(f), "complete.json") }

// complete is complete.json. It is written last: where it is, all is.
type complete struct {
	APIURL  string `json:"apiURL"`
	Version string `json:"version"`
}

func (f folder) readConfig() (config, error) {
	raw, err := os.ReadFile(f.config())
	if err != nil {
		return config{}, fmt.Errorf("reading the install-config: %w", err)
	}
	return parse(raw)
}

// readMetadata returns what the installation is called. The error is
// fs.ErrNotExist if it has no name yet.
func (f folder) readMetadata() (metadata, error) {
	raw, err := os.ReadFile(f.metadata())
	if err != nil {
		return metadata{}, fmt.Errorf("reading the metadata: %w", err)
	}
	return parseMetadata(raw)
}

// name returns what the installation is called, and names it if it has no name.
// The name is on disk before anything bears it.
func (f folder) name(c config) (metadata, error) {
	md, err := f.readMetadata()
	if !errors.Is(err, fs.ErrNotExist) {
		return md, err
	}
	md = newMetadata(c)
	raw, err := md.encode()
	if err != nil {
		return md, err
	}
	return md, pki.WriteFile(f.metadata(), raw)
}

func (f folder) finish(c complete) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return pki.WriteFile(f.complete(), raw)
}

// result returns what a finished installation came to; false if it is not finished.
func (f folder) result() (install.Result, bool, error) {
	raw, err := os.ReadFile(f.complete())
	if errors.Is(err, fs.ErrNotExist) {
		return install.Result{}, false, nil
	}
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	var c complete
	if err := json.Unmarshal(raw, &c); err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	kubeconfig, err := os.ReadFile(f.kubeconfig())
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	password, err := os.ReadFile(f.password())
	if err != nil {
		return install.Result{}, false, fmt.Errorf("reading the result: %w", err)
	}
	return install.Result{
		Phase: install.Succeeded, Kubeconfig: kubeconfig, Password: string(password), APIURL: c.APIURL, Version: c.Version,
	}, true, nil
}

// secrets returns what must not be seen in an excerpt of the log.
func (f folder) secrets() []string {
	var secrets []string
	for _, path := range []string{f.password(), f.token()} {
		if raw, err := os.ReadFile(path); err == nil { // what was never made cannot have been printed
			secrets = append(secrets, string(raw))
		}
	}
	return secrets
}

// there reports whether the folder exists.
func (f folder) there() bool {
	_, err := os.Stat(string(f))
	return !errors.Is(err, fs.ErrNotExist)
}
