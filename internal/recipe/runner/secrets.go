package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// secretFolder is the folder in which the credentials of programs exist while these run.
type secretFolder string

const (
	// memoryDir is a file system in memory on Linux.
	memoryDir = "/dev/shm"
	// secretPrefix is the prefix of the folder's name, secretPath the file with the path of the folder
	// that was used last.
	secretPrefix = "hotspare-secrets-"
	secretPath   = ".secrets"
)

// newSecretFolder creates a folder that only this user can read, below dir. It removes the folder of
// an earlier process: its name is recorded before it is created.
func newSecretFolder(folder, dir string) (secretFolder, error) {
	if dir == "" {
		dir = folder
		if info, err := os.Stat(memoryDir); err == nil && info.IsDir() {
			dir = memoryDir
		}
	}
	record := filepath.Join(folder, secretPath)
	last, err := os.ReadFile(record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("finding credentials that are left over: %w", err)
	}
	if old := string(last); strings.HasPrefix(filepath.Base(old), secretPrefix) {
		if err := os.RemoveAll(old); err != nil {
			return "", fmt.Errorf("removing credentials that are left over: %w: remove %s", err, old)
		}
	}
	created := filepath.Join(dir, secretPrefix+rand.Text())
	if err := pki.WriteFile(record, []byte(created)); err != nil {
		return "", err
	}
	if err := os.Mkdir(created, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for credentials: %w", err)
	}
	return secretFolder(created), nil
}

// remove removes the folder with all that is in it.
func (s secretFolder) remove() error { return os.RemoveAll(string(s)) }
