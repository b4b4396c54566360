package pod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install/job/state"
)

// logName is the installer's own log: it grows, and has what stdout has.
const logName = ".openshift_install.log"

// Prepare has the installer name what it will make, and packs its folder. Nothing is
// made in the cloud. It returns nil when the outcome is in the state.
func Prepare(ctx context.Context, o Options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.Read(ctx)
	if err != nil {
		return err
	}
	if seen.Phase != state.New {
		fmt.Fprintf(p.Out, "the attempt is %s: nothing is left to prepare\n", seen.Phase)
		return nil
	}
	p.log.hide(seen.InstallConfig)
	limited, cancel := p.limited(ctx)
	defer cancel()
	made, err := p.prepare(limited, seen)
	if err != nil && ctx.Err() != nil {
		return err // nothing is known yet; the next pod begins again
	}
	return p.record(ctx, func(s *state.State) error {
		// Of another install-config another pod tells.
		if s.Phase != state.New || !bytes.Equal(s.InstallConfig, seen.InstallConfig) || !bytes.Equal(s.ManifestPatches, seen.ManifestPatches) {
			return state.ErrNoChange
		}
		if err != nil {
			s.Phase, s.Reason, s.Log = state.Failed, p.prepareReason(err), p.log.excerpt(err)
			return nil //nolint:nilerr // what went wrong is the outcome
		}
		s.Phase, s.Metadata, s.Version = state.Prepared, made.Metadata, made.Version
		s.Parts, s.Digest = made.Parts, made.Digest
		return nil
	})
}

// refused is how the installer says that the install-config is wrong. What else
// keeps it from preparing, credentials for instance, may pass.
var refused = regexp.MustCompile(`invalid \\*"?install-config|failed to unmarshal install-config|failed to parse .*\.ya?ml`)

func (p *pod) prepareReason(err error) string {
	if p.log.find(refused) != "" || fault.Of(err) == fault.Denied {
		return state.ReasonInvalid
	}
	if p.log.reason() == hivev1.ReasonInvalidCredentials {
		return hivev1.ReasonInvalidCredentials
	}
	return state.ReasonPrepare
}

func (p *pod) prepare(ctx context.Context, seen state.State) (made state.State, err error) {
	if err := p.write("install-config.yaml", seen.InstallConfig); err != nil {
		return made, err
	}
	made.Version = p.version(ctx)
	if err := p.run(ctx, "create", "manifests"); err != nil {
		return made, err
	}
	for _, dir := range p.Manifests {
		if err := p.add(dir); err != nil {
			return made, err
		}
	}
	if err := p.patch(seen.ManifestPatches); err != nil {
		return made, err
	}
	if err := p.run(ctx, "create", "ignition-configs"); err != nil {
		return made, err
	}
	if made.Metadata, err = p.metadata(); err != nil {
		return made, err
	}
	if err := p.readPassword(); err != nil {
		return made, err
	}
	packed, err := state.Pack(p.dir(), logName)
	if err != nil {
		return made, err
	}
	made.Parts, made.Digest, err = p.Store.Save(ctx, packed)
	return made, err
}

// add copies manifests to where the installer looks for them. A mounted Secret has
// its files behind links.
func (p *pod) add(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the manifests to add: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("reading manifest %s: %w", e.Name(), err)
		}
		if err := p.write(filepath.Join("manifests", e.Name()), content); err != nil {
			return err
		}
	}
	return nil
}

// metadata is metadata.json without credentials: it becomes part of an object that
// many may read.
func (p *pod) metadata() ([]byte, error) {
	raw, err := os.ReadFile(p.file("metadata.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the installer has ended well and left no metadata.json: it is not an openshift-install that hotspare can drive")
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata.json: %w", err)
	}
	var names struct{ ClusterID, InfraID string }
	if err := json.Unmarshal(raw, &names); err != nil || names.InfraID == "" || names.ClusterID == "" {
		return nil, errors.Join(errors.New("metadata.json names no infraID or no clusterID"), err)
	}
	return withoutCredentials(raw)
}

// version is what the installer says of itself; "" if it does not.
func (p *pod) version(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, p.Installer, "version")
	cmd.Env = p.environment()
	out, err := cmd.Output() // if it fails it is asked for more below, and tells then what is wrong
	if err != nil {
		return "" // it is asked for more below, and tells then what is wrong
	}
	first, _, _ := strings.Cut(string(out), "\n")
	words := strings.Fields(first)
	if len(words) == 0 {
		return ""
	}
	return strings.TrimPrefix(words[len(words)-1], "v")
}

// placeSSHKey puts the key where the installer looks when it gathers logs of a
// bootstrap machine that failed.
func (p *pod) placeSSHKey() error {
	if p.SSHKey == "" {
		return nil
	}
	key, err := os.ReadFile(p.SSHKey)
	if err != nil {
		return fmt.Errorf("reading the SSH key: %w", err)
	}
	dir := filepath.Join(p.home(), ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("placing the SSH key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "id_rsa"), key, 0o600); err != nil {
		return fmt.Errorf("placing the SSH key: %w", err)
	}
	return nil
}
