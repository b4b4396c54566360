package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"
)

// ServiceAccountKeyPath returns where, below dir, the key is that signs the
// tokens of service accounts. The API server takes its public half from it too.
func ServiceAccountKeyPath(dir string) string {
	return filepath.Join(dir, "sa.key")
}

// EnsureServiceAccountKey makes the key at ServiceAccountKeyPath(dir) if there is
// none. A key that is there is kept: tokens that it has signed remain good.
func EnsureServiceAccountKey(dir string) error {
	path := ServiceAccountKeyPath(dir)
	_, err := os.Stat(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading service-account key: %w", err)
	}
	key, err := generateKey()
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encoding service-account key: %w", err)
	}
	return WriteFile(path, pem)
}
