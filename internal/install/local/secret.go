package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"strings"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// passwordLetters are the letters of openshift-install's passwords, without look-alikes.
const passwordLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// newPassword returns a password for kubeadmin: XXXXX-XXXXX-XXXXX-XXXXX.
func newPassword() (string, error) {
	groups := make([]string, 4)
	for i := range groups {
		group := make([]byte, 5)
		for j := range group {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(passwordLetters))))
			if err != nil {
				return "", fmt.Errorf("generating a password: %w", err)
			}
			group[j] = passwordLetters[n.Int64()]
		}
		groups[i] = string(group)
	}
	return strings.Join(groups, "-"), nil
}

// readOrCreateSecret returns the secret that is stored at path. If there is none, it generates one
// and stores it: an interrupted installation continues with the same secrets.
func readOrCreateSecret(path string, generate func() (string, error)) (string, error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		return string(raw), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	secret, err := generate()
	if err != nil {
		return "", err
	}
	return secret, pki.WriteFile(path, []byte(secret))
}
