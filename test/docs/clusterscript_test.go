package docs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeKubectl answers what the script asks of a hub, and records its arguments in $CALLS. These variables change an answer:
// CREATE and WAIT are shell commands that run in its place.
const fakeKubectl = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
*whoami*) echo ci ;;
*"create -f -"*) cat > /dev/null && eval "${CREATE:-}" ;;
*"wait --for"*) eval "${WAIT:-}" ;;
*adminKubeconfigSecretRef*) echo s ;;
*data.kubeconfig*) printf %s the-kubeconfig | base64 ;;
*spec.namespace*) echo c ;;
esac
`

// scriptLimit is the time after which a script that has not ended is killed.
const scriptLimit = 30 * time.Second

// script is a run of docs/ci/cluster.sh with fakeKubectl.
type script struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// newScript returns a run with these arguments that is not started, in a folder of its own.
func newScript(t *testing.T, args []string, env ...string) *script {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(top, "docs", "ci", "cluster.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, dir: t.TempDir()}
	programs := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(fakeKubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command("sh", append([]string{path}, args...)...)
	s.cmd.Env = append([]string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "CALLS=" + filepath.Join(s.dir, "calls"), "POOL=p", "CLAIM=c",
		"CLUSTER_KUBECONFIG=" + s.kubeconfig(),
	}, env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s
}

func (s *script) kubeconfig() string { return filepath.Join(s.dir, "cluster.kubeconfig") }

// start starts the script. It is killed with its children after scriptLimit, and at the end of the test.
func (s *script) start() {
	s.t.Helper()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.stdout, s.cmd.Stderr = bufio.NewReader(out), &s.stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	kill := func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // all may have ended
	}
	limit := time.AfterFunc(scriptLimit, kill)
	s.t.Cleanup(func() { limit.Stop(); kill() })
}

// readUntil reads the output of the script until a line.
func (s *script) readUntil(want string) {
	s.t.Helper()
	for {
		line, err := s.stdout.ReadString('\n')
		if line == want+"\n" {
			return
		}
		if err != nil {
			s.t.Fatalf("the script has not printed %q: %v\n%s", want, err, &s.stderr)
		}
	}
}

// wait waits until the script has ended, and nothing holds its output, and returns its exit code and the rest of its output.
func (s *script) wait() (code int, rest string) {
	s.t.Helper()
	out, err := io.ReadAll(s.stdout)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // the exit code says it
	return s.cmd.ProcessState.ExitCode(), string(out)
}

// calls returns the calls of kubectl that contain a text.
func (s *script) calls(text string) (found []string) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, text) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Another user of the runner may have put a file or a link where the script writes.
func TestTheScriptWritesNewFilesOnly(t *testing.T) {
	for what, put := range map[string]func(path, elsewhere string) error{
		"nothing":       func(string, string) error { return nil },
		"a file":        func(path, _ string) error { return os.WriteFile(path, []byte("old"), 0o666) },
		"a link":        func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a second name": func(path, elsewhere string) error { return os.Link(elsewhere, path) },
	} {
		t.Run(what, func(t *testing.T) {
			s := newScript(t, []string{"claim"}, "HUB=https://hub", "HUB_TOKEN=t")
			elsewhere := filepath.Join(s.dir, "elsewhere")
			if err := os.WriteFile(elsewhere, []byte("theirs"), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{s.kubeconfig(), s.kubeconfig() + ".hub"} {
				if err := put(path, elsewhere); err != nil {
					t.Fatal(err)
				}
			}
			s.start()
			if code, out := s.wait(); code != 0 {
				t.Fatalf("exit code %d: %s%s", code, out, &s.stderr)
			}
			for path, want := range map[string]string{s.kubeconfig(): "the-kubeconfig", s.kubeconfig() + ".hub": "server: https://hub"} {
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

// A shell runs its traps only after a command in the foreground has ended: a job in the queue must not wait for that.
func TestTheScriptIsStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"claim", "run"} {
		for sent, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
			t.Run(fmt.Sprintf("%s, %s", command, sent), func(t *testing.T) {
				t.Parallel()
				s := newScript(t, []string{command, "true"}, "WAIT=echo waiting; exec sleep 1000")
				s.start()
				s.readUntil("waiting")
				if err := s.cmd.Process.Signal(sent); err != nil {
					t.Fatal(err)
				}
				if code, _ := s.wait(); code != want {
					t.Errorf("exit code %d, want %d: it was killed, or kubectl lived for longer than the script\n%s", code, want, &s.stderr)
				}
				if released := s.calls("delete clusterclaim c"); len(released) != 1 {
					t.Errorf("it released the claim %d times", len(released))
				}
			})
		}
	}
}

// A claim that the script cannot use is released, and one that it did not create is not.
func TestTheScriptReleasesTheClaimThatItCannotUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		env      string
		code     int
		released bool
	}{
		"claim: the cluster is ready":           {[]string{"claim"}, "WAIT=", 0, false},
		"claim: the wait times out":             {[]string{"claim"}, "WAIT=exit 1", 1, true},
		"claim: the claim is another job's":     {[]string{"claim"}, "CREATE=echo 'Error from server (AlreadyExists): exists' >&2; exit 1", 1, false},
		"claim: the hub may have created it":    {[]string{"claim"}, "CREATE=echo 'Unable to connect' >&2; exit 1", 1, true},
		"claim: HEARTBEAT_TIMEOUT is not valid": {[]string{"claim"}, "HEARTBEAT_TIMEOUT=1m30s", 1, false},
		"run: the command succeeds":             {[]string{"run", "true"}, "WAIT=", 0, true},
		"run: the command fails":                {[]string{"run", "sh", "-c", "exit 7"}, "WAIT=", 7, true},
		"run: the wait times out":               {[]string{"run", "true"}, "WAIT=exit 1", 1, true},
		"run: the claim is another job's":       {[]string{"run", "true"}, "CREATE=echo 'Error from server (AlreadyExists): exists' >&2; exit 1", 1, false},
		"release":                               {[]string{"release"}, "WAIT=", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.args, c.env)
			if err := os.WriteFile(filepath.Join(s.dir, "calls"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.start()
			code, _ := s.wait()
			if released := len(s.calls("delete clusterclaim c")) > 0; code != c.code || released != c.released {
				t.Errorf("exit code %d, released: %t; want %d, %t\n%s", code, released, c.code, c.released, &s.stderr)
			}
		})
	}
}
