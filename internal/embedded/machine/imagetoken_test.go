package machine

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestAllMachinesOfAClusterHaveTheSameImageToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c-12345-master-0")
	tokens := make([]string, 20)
	var machines sync.WaitGroup
	for i := range tokens {
		machines.Go(func() {
			token, err := EnsureImageToken(dir)
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token
		})
	}
	machines.Wait()
	for _, token := range tokens {
		if len(token) < 20 || token != tokens[0] {
			t.Errorf("the tokens are %q", tokens)
			break
		}
	}
	info, err := os.Stat(ImageTokenPath(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v: %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(NetworkPath(dir)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	other, err := EnsureImageToken(filepath.Join(t.TempDir(), "c-67890-master-0"))
	if err != nil || other == tokens[0] {
		t.Errorf("another cluster has the token %q: %v", other, err)
	}
}

func TestAnEmptyImageTokenIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(NetworkPath(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ImageTokenPath(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := EnsureImageToken(dir)
	if err != nil || len(token) < 20 {
		t.Errorf("the token is %q: %v", token, err)
	}
}
