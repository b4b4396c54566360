package pki

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The identity with which a machine requests its first certificate. It is the identity that
// OpenShift gives to its machines, so that rules written for OpenShift apply.
const (
	NodeBootstrapperNamespace = "openshift-machine-config-operator"
	NodeBootstrapperName      = "node-bootstrapper"
	NodeBootstrapperUser      = "system:serviceaccount:" + NodeBootstrapperNamespace + ":" + NodeBootstrapperName
)

// NodeBootstrapperGroups returns the groups of every service account in NodeBootstrapperNamespace,
// without system:authenticated, which the API server adds.
func NodeBootstrapperGroups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + NodeBootstrapperNamespace}
}

// TokenFilePath returns the path, below dir, of the file with the static tokens that the API server
// accepts (--token-auth-file).
func TokenFilePath(dir string) string {
	return filepath.Join(dir, "tokens.csv")
}

// NewBootstrapToken returns a new secret for the node bootstrapper.
func NewBootstrapToken() (string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("generating a bootstrap token: %w", err)
	}
	return hex.EncodeToString(secret), nil
}

// WriteBootstrapToken writes TokenFilePath(dir) so that token authenticates a client as the node
// bootstrapper.
//
// OpenShift uses a long-lived token of a service account. Such a token contains the account's UID
// and is valid only while a Secret with its name exists, so it cannot be created before the
// cluster's first boot; but a worker's disk is written before that, like an ignition file. A static
// token gives the same user name and the same groups, which is all that an approver of CSRs can
// see, and it is valid from the first request, after each boot.
func WriteBootstrapToken(dir, token string) error {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	groups := strings.Join(NodeBootstrapperGroups(), ",")
	record := []string{token, NodeBootstrapperUser, NodeBootstrapperName, groups}
	if err := w.WriteAll([][]string{record}); err != nil {
		return fmt.Errorf("encoding bootstrap token: %w", err)
	}
	return WriteFile(TokenFilePath(dir), out.Bytes())
}

// ReadBootstrapToken returns the token that WriteBootstrapToken wrote below dir.
func ReadBootstrapToken(dir string) (string, error) {
	raw, err := os.ReadFile(TokenFilePath(dir))
	if err != nil {
		return "", fmt.Errorf("reading the bootstrap token: %w", err)
	}
	record, err := csv.NewReader(bytes.NewReader(raw)).Read()
	if err != nil || len(record) != 4 || record[0] == "" || record[1] != NodeBootstrapperUser {
		return "", fmt.Errorf("reading the bootstrap token: %s is damaged", TokenFilePath(dir)) // the reader's error may quote it
	}
	return record[0], nil
}
