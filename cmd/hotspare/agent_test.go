package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/embedded/spoke/node"
)

// Who writes the kubeconfig may not be who runs this computer.
func TestAKubeconfigOfOthersNamesNothingOfThisComputer(t *testing.T) {
	const cluster = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`
	for name, c := range map[string]struct{ rest, want string }{
		"a token":                {`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`, ""},
		"a program":              {`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"exec":{"command":"sh","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}}}]}`, "a program or a file"},
		"a file of a token":      {`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"tokenFile":"/etc/passwd"}}]}`, "a program or a file"},
		"a file of a key":        {`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"client-key":"/etc/passwd"}}]}`, "a program or a file"},
		"a file of the server's": {`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1","certificate-authority":"/etc/passwd"}}],"users":[]}`, "certificate-authority-data"},
		"no kubeconfig":          {`"secret"`, "cannot be read as a kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(cluster+c.rest), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := loadHubConfig(path)
			if c.want == "" {
				if err != nil || config.BearerToken != "t" {
					t.Errorf("%+v, %v", config, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestAPodOfALocalMachineReadsItsOwnFilesOnly(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "kubeconfig")
	inside, link := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "link")
	for _, path := range []string{inside, outside} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := checkPathInPod(outside); err != nil {
		t.Errorf("outside a pod: %v", err)
	}
	t.Setenv(node.PodDir, dir)
	if err := checkPathInPod(inside); err != nil {
		t.Errorf("its own: %v", err)
	}
	for _, path := range []string{outside, link, filepath.Join(dir, "..", filepath.Base(filepath.Dir(outside)))} {
		if err := checkPathInPod(path); err == nil {
			t.Errorf("it may read %s", path)
		}
	}
	if _, err := loadPlaneConfig(outside); err == nil {
		t.Error("it may go to any cluster")
	}
}
