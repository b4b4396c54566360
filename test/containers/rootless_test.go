//go:build containers

package containers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ordinaryUser is a user of every Debian who is not root. The test delegates subordinate IDs to it in a
// mount namespace, so that the computer keeps its files.
const ordinaryUser = "nobody"

// TestTheDemoOfAnOrdinaryUser runs the demo without the rights of root: its hub starts clusters with real
// containers, one of them serves a page, and nothing is left, although files of containers belong to
// other users.
func TestTheDemoOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	dir := makeUserFolder(t)
	cmd := asOrdinaryUser(ctx, t, dir, filepath.Join(dir, "hotspare"), "demo")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("the demo took %s", time.Since(began).Round(time.Second))
	for _, want := range []string{
		"loaded hotspare.demo/web-server:1", "Hello from pod web-", "a container in the cluster that you claimed", " is hibernating\n", " is running\n",
		"Commands to try next:",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not print %q:\n%s", want, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// makeUserFolder returns a folder of the ordinary user with the program and a folder tmp.
func makeUserFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "TestRootless")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder
	for _, command := range [][]string{
		{"cp", binary, filepath.Join(dir, "hotspare")},
		{"mkdir", filepath.Join(dir, "tmp")},
		{"chmod", "0755", dir, filepath.Join(dir, "hotspare")},
		{"chown", ordinaryUser, filepath.Join(dir, "tmp")},
		// Most distributions let everybody open the device.
		{"mknod", "-m", "0666", filepath.Join(dir, "tun"), "c", "10", "200"},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ids"), []byte(ordinaryUser+":200000:65536\n"), 0o644); err != nil { //nolint:gosec // newuidmap reads it
		t.Fatal(err)
	}
	return dir
}

// asOrdinaryUser returns a command that runs as the ordinary user, with subordinate IDs and a TUN device.
func asOrdinaryUser(ctx context.Context, t *testing.T, dir string, command ...string) *exec.Cmd {
	t.Helper()
	script := fmt.Sprintf(`set -e
touch /etc/subuid /etc/subgid
mount --bind %[1]s/ids /etc/subuid
mount --bind %[1]s/ids /etc/subgid
mount --bind %[1]s/tun /dev/net/tun
cd %[1]s/tmp
exec setpriv --reuid=%[2]s --regid=$(id -g %[2]s) --clear-groups "$@"`, dir, ordinaryUser)
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "sh", "-c", script, "sh"}, command...)...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir+"/tmp", "USER="+ordinaryUser)
	return cmd
}
