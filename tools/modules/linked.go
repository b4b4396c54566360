package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// systems are those that releases are for. Each links other modules.
var systems = []string{"linux", "darwin"}

// module is one that is linked.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
	// folders are those of its packages that are linked.
	folders map[string]bool
}

// linkedBy are the modules of all that packages import, on any system, and Go itself as
// std. They are in the order of their paths.
func linkedBy(packages []string) ([]*module, error) {
	found := map[string]*module{}
	for _, system := range systems {
		raw, err := golang(system, append([]string{"list", "-deps", "-json=Dir,Module"}, packages...)...)
		if err != nil {
			return nil, err
		}
		if err := gather(bytes.NewReader(raw), found); err != nil {
			return nil, err
		}
	}
	version, err := golang("", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found["std"] = &module{Path: "std", Version: "v" + strings.TrimPrefix(strings.Fields(string(version))[0], "go")}
	var out []*module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[path])
	}
	return out, nil
}

// gather adds the modules of packages, as go list prints them.
func gather(in io.Reader, found map[string]*module) error {
	for dec := json.NewDecoder(in); ; {
		var p struct {
			Dir    string
			Module *module
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading what go list says: %w", err)
		}
		m := p.Module
		if m == nil || m.Main { // of Go, or ours
			continue
		}
		if found[m.Path] == nil {
			m.folders = map[string]bool{}
			found[m.Path] = m
		}
		found[m.Path].folders[p.Dir] = true
	}
}

// golang runs the go command as for another system.
func golang(system string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...) // who is tired of it ends both
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+system)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
