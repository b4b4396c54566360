package hostfacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/embedded/nodeprograms"
)

// systemFolders are searched after $PATH: for users other than root they are often not in it.
var systemFolders = []string{"/usr/sbin", "/sbin"}

// hubPrograms are programs that the hub runs, which finds them in $PATH. They have no flag --version.
var hubPrograms = []string{doctor.NewUIDMap, doctor.NewGIDMap}

// nodePrograms are the programs that nodes run, and whether to ask each for its version.
var nodePrograms = map[string]bool{
	doctor.Containerd:     true,
	doctor.ContainerdShim: false, // it has the version of containerd, and no flag --version
	doctor.CTR:            false, // it has the version of containerd
	doctor.Runc:           true,
	doctor.IPTables:       true,
	doctor.NFT:            true,
}

// readPrograms finds the programs, and asks them for their versions at the same time.
func (h host) readPrograms(ctx context.Context) map[string]doctor.Program {
	found := map[string]doctor.Program{}
	for _, name := range hubPrograms {
		if path := h.findProgram(name); path != "" {
			found[name] = doctor.Program{Path: path}
		}
	}
	var lock sync.Mutex
	var asked sync.WaitGroup
	for name, hasVersion := range nodePrograms {
		path := nodeprograms.Find(name, h.isProgram)
		if path == "" {
			continue
		}
		asked.Go(func() {
			p := doctor.Program{Path: path}
			if hasVersion {
				version, err := h.readVersion(ctx, path)
				p.Version, p.Err = version, formatError(err)
			}
			lock.Lock()
			defer lock.Unlock()
			found[name] = p
		})
	}
	asked.Wait()
	return found
}

// findProgram returns the path of a program of the hub below the root; "" if there is none. It skips relative
// folders, as package exec does.
func (h host) findProgram(name string) string {
	for _, dir := range append(filepath.SplitList(h.searchPath), systemFolders...) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && h.isProgram(path) {
			return path
		}
	}
	return ""
}

func (h host) isProgram(path string) bool {
	info, err := os.Stat(filepath.Join(h.root, path))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// readVersion returns the first line that a program prints with --version.
func (h host) readVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var out firstBytes
	cmd := exec.CommandContext(ctx, filepath.Join(h.root, path), "--version")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := h.runInGroup(ctx, cmd); err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out.text)), "\n")
	return strings.TrimSpace(line), nil
}

// runInGroup runs a command, which may be a script: when ctx ends, its children are killed with it. The timeout of ctx is
// that of the host.
func (h host) runInGroup(ctx context.Context, cmd *exec.Cmd) error {
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var failed *os.PathError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer after %s", h.timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return failed.Err // the path is known
	default:
		return err
	}
}

// firstBytes keeps the beginning of what is written to it, and discards the rest.
type firstBytes struct{ text []byte }

// maxFirstBytes is enough for the line with the version.
const maxFirstBytes = 4096

func (b *firstBytes) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxFirstBytes-len(b.text))]...)
	return len(p), nil
}
