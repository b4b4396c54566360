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

// logName is the installer's own log file. It grows, and repeats what is on stdout.
const logName = ".openshift_install.log"

// PrepareInstall runs the installer to name what it will create, and packs its folder. It creates
// nothing in the cloud. It returns nil when the outcome is in the state.
func PrepareInstall(ctx context.Context, o Options) error {
	p, err := newInstallerRun(o)
	if err != nil {
		return err
	}
	seen, err := p.Store.ReadState(ctx)
	if err != nil {
		return err
	}
	if seen.Phase != state.New {
		fmt.Fprintf(p.Out, "the attempt is already %s\n", seen.Phase)
		return nil
	}
	p.log.setInstallConfig(seen.InstallConfig)
	limited, cancel := p.withTimeLimit(ctx)
	defer cancel()
	made, err := p.prepareFolder(limited, seen)
	if err != nil && ctx.Err() != nil {
		return err // nothing is known yet; the next pod starts again
	}
	return p.recordOutcome(ctx, func(s *state.State) error {
		// If the install-config has changed, another pod reports the outcome for the new one.
		if s.Phase != state.New || !bytes.Equal(s.InstallConfig, seen.InstallConfig) || !bytes.Equal(s.ManifestPatches, seen.ManifestPatches) {
			return state.ErrNoChange
		}
		if err != nil {
			s.Phase, s.Reason, s.Log = state.Failed, p.prepareFailureReason(err), p.log.logExcerpt(err)
			return nil //nolint:nilerr // the error is recorded as the outcome
		}
		s.Phase, s.Metadata, s.Version = state.Prepared, made.Metadata, made.Version
		s.Parts, s.Digest = made.Parts, made.Digest
		return nil
	})
}

// invalidConfigPattern matches the installer's messages about a wrong install-config. Other reasons
// why preparing fails, such as credentials, may be temporary.
var invalidConfigPattern = regexp.MustCompile(`invalid \\*"?install-config|failed to unmarshal install-config|failed to parse .*\.ya?ml`)

func (r *installerRun) prepareFailureReason(err error) string {
	if r.log.findPatternMatch(invalidConfigPattern) != "" || fault.KindOf(err) == fault.Denied {
		return state.ReasonInvalid
	}
	if r.log.failureReason() == hivev1.ReasonInvalidCredentials {
		return hivev1.ReasonInvalidCredentials
	}
	return state.ReasonPrepare
}

func (r *installerRun) prepareFolder(ctx context.Context, seen state.State) (made state.State, err error) {
	if err := r.writeClusterFile("install-config.yaml", seen.InstallConfig); err != nil {
		return made, err
	}
	made.Version = r.installerVersion(ctx)
	if err := r.runInstaller(ctx, "create", "manifests"); err != nil {
		return made, err
	}
	for _, dir := range r.Manifests {
		if err := r.addManifests(dir); err != nil {
			return made, err
		}
	}
	if err := r.patchManifests(seen.ManifestPatches); err != nil {
		return made, err
	}
	if err := r.runInstaller(ctx, "create", "ignition-configs"); err != nil {
		return made, err
	}
	if made.Metadata, err = r.readMetadata(); err != nil {
		return made, err
	}
	if err := r.readPassword(); err != nil {
		return made, err
	}
	packed, err := state.PackFolder(r.clusterDir(), logName)
	if err != nil {
		return made, err
	}
	made.Parts, made.Digest, err = r.Store.SaveFolder(ctx, packed)
	return made, err
}

// addManifests copies manifests to where the installer looks for them. A mounted Secret has its
// files behind symbolic links.
func (r *installerRun) addManifests(dir string) error {
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
		if err := r.writeClusterFile(filepath.Join("manifests", e.Name()), content); err != nil {
			return err
		}
	}
	return nil
}

// readMetadata returns metadata.json without credentials: it becomes part of an object that many
// users may read.
func (r *installerRun) readMetadata() ([]byte, error) {
	raw, err := os.ReadFile(r.clusterFilePath("metadata.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the installer succeeded without writing metadata.json: hotspare does not support this openshift-install")
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

// installerVersion returns the version that the installer prints; "" if it prints none.
func (r *installerRun) installerVersion(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, r.Installer, "version")
	cmd.Env = r.installerProcessEnv()
	out, err := cmd.Output() // if it fails, a later command of the installer reports the error
	if err != nil {
		return "" // a later command of the installer reports the error
	}
	first, _, _ := strings.Cut(string(out), "\n")
	words := strings.Fields(first)
	if len(words) == 0 {
		return ""
	}
	return strings.TrimPrefix(words[len(words)-1], "v")
}

// placeSSHKey puts the key where the installer looks for it when it gathers logs of a bootstrap
// machine that failed.
func (r *installerRun) placeSSHKey() error {
	if r.SSHKey == "" {
		return nil
	}
	key, err := os.ReadFile(r.SSHKey)
	if err != nil {
		return fmt.Errorf("reading the SSH key: %w", err)
	}
	dir := filepath.Join(r.homeDir(), ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing the SSH key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "id_rsa"), key, 0o600); err != nil {
		return fmt.Errorf("writing the SSH key: %w", err)
	}
	return nil
}
