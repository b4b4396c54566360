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

// The identity by which a machine asks for its first certificate: the one that
// OpenShift gives to its machines, so that rules written for OpenShift apply.
const (
	NodeBootstrapperNamespace = "openshift-machine-config-operator"
	NodeBootstrapperName      = "node-bootstrapper"
	NodeBootstrapperUser      = "system:serviceaccount:" + NodeBootstrapperNamespace + ":" + NodeBootstrapperName
)

// NodeBootstrapperGroups returns the groups of every service account in that
// namespace, without system:authenticated, which the API server adds.
func NodeBootstrapperGroups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + NodeBootstrapperNamespace}
}

// TokenFilePath returns where, below dir, the file is that tells the API server
// which static tokens to accept (--token-auth-file).
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

// WriteBootstrapToken writes TokensPath(dir) so that whoever shows token is the node
// bootstrapper.
//
// OpenShift uses a long-lived token of a service account. Such a token contains
// the account's UID and is only good while a Secret with its name exists, so it
// cannot be made before the cluster's first boot; but a worker's disk is written
// before that, as an ignition file is. A static token gives the same user name and
// the same groups, which is all that an approver of CSRs can see, and is there
// from the first request on, after each boot.
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

// ReadBootstrapToken returns the token that WriteTokens wrote below dir.
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
