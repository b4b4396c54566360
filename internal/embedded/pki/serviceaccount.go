package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"
)

// ServiceAccountKeyPath returns the path, below dir, of the key that signs the tokens of service
// accounts. The API server also reads its public half from it.
func ServiceAccountKeyPath(dir string) string {
	return filepath.Join(dir, "sa.key")
}

// EnsureServiceAccountKey creates the key at ServiceAccountKeyPath(dir) if it does not exist. It
// keeps an existing key, so that the tokens signed with it stay valid.
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
