package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeKubectl answers what the script asks of a hub.
const fakeKubectl = `#!/bin/sh
case "$*" in
*whoami*) echo ci ;;
*"create -f -"*) cat > /dev/null ;;
*adminKubeconfigSecretRef*) echo s ;;
*data.kubeconfig*) printf %s the-kubeconfig | base64 ;;
*spec.namespace*) echo c ;;
esac
`

// Another user of the runner may have put a file or a link where the script writes.
func TestTheScriptWritesNewFilesOnly(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(top, "docs", "ci", "cluster.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(path, elsewhere string) error{
		"nothing":       func(string, string) error { return nil },
		"a file":        func(path, _ string) error { return os.WriteFile(path, []byte("old"), 0o666) },
		"a link":        func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a second name": func(path, elsewhere string) error { return os.Link(elsewhere, path) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			elsewhere, programs := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "bin")
			if err := os.WriteFile(elsewhere, []byte("theirs"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(programs, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(fakeKubectl), 0o755); err != nil {
				t.Fatal(err)
			}
			kubeconfig := filepath.Join(dir, "cluster.kubeconfig")
			for _, path := range []string{kubeconfig, kubeconfig + ".hub"} {
				if err := put(path, elsewhere); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", script, "claim")
			cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "POOL=p", "CLAIM=c", "HUB=https://hub", "HUB_TOKEN=t", "CLUSTER_KUBECONFIG=" + kubeconfig}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for path, want := range map[string]string{kubeconfig: "the-kubeconfig", kubeconfig + ".hub": "server: https://hub"} {
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(raw), want) || info.Mode() != 0o600 {
					t.Errorf("%s has mode %s and contains %q", filepath.Base(path), info.Mode(), raw)
				}
			}
			if raw, err := os.ReadFile(elsewhere); err != nil || string(raw) != "theirs" {
				t.Errorf("the other file contains %q, %v", raw, err)
			}
		})
	}
}
