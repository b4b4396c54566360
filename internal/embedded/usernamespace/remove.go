// Package usernamespace lets a user who is not root run and remove local machines with containers. Such
// a machine runs in a user namespace, in which the user is root and has the subordinate IDs of
// /etc/subuid and /etc/subgid as the other users. On the disk, files of those users belong to IDs that
// only a process in such a namespace may remove.
package usernamespace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Remover removes folders that contain files of subordinate IDs.
type Remover struct {
	// Command is the program with the arguments that precede "machine remove".
	Command []string
}

// RemoveAll removes a file or a folder with everything in it, and follows no link. A path that does not
// exist is success.
func (r Remover) RemoveAll(ctx context.Context, path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(r.RemoveFrom(ctx, root, filepath.Base(path)), root.Close())
}

// RemoveFrom is RemoveAll for a path below root, which no link leaves.
func (r Remover) RemoveFrom(ctx context.Context, root *os.Root, path string) error {
	err := root.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) || !IsNeeded() || len(r.Command) == 0 {
		return err
	}
	args := slices.Concat(r.Command[1:], []string{"machine", "remove", "--root", root.Name(), "--path", path})
	cmd := exec.CommandContext(ctx, r.Command[0], args...)
	Configure(cmd)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("removing files of subordinate IDs: %w", err)
	}
	if err := Map(ctx, cmd.Process.Pid); err != nil {
		return errors.Join(fmt.Errorf("removing files of subordinate IDs: %w", err), cmd.Process.Kill(), ignoreExit(cmd.Wait()))
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("removing files of subordinate IDs: %w: %s", err, strings.TrimSpace(output.String()))
	}
	return nil
}

// RemoveBelow removes a path below a folder in a process that Remover has started.
func RemoveBelow(dir, path string) error {
	if err := Enter(); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(root.RemoveAll(path), root.Close())
}

// ignoreExit ignores how a killed process ended.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
