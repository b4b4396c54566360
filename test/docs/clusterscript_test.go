package docs

import (
	"bufio"
	"encoding/base64"
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
// WHOAMI, CREATE, WAIT, ANNOTATE and STATE are shell commands that run in its place.
const fakeKubectl = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
*whoami*) eval "${WHOAMI:-echo ci}" ;;
*can-i*) eval "${CAN_I:-}" ;;
*"create -f -"*) cat > /dev/null && eval "${CREATE:-}" ;;
*"wait --for"*) eval "${WAIT:-}" ;;
*annotate*) eval "${ANNOTATE:-}" ;;
*deletionTimestamp*) eval "${STATE:-}" ;;
*Pending*) echo 'there is no pool p' ;;
*adminKubeconfigSecretRef*) echo s ;;
*data.kubeconfig*) printf %s the-kubeconfig | base64 ;;
*spec.namespace*) echo c ;;
esac
`

// scriptLimit is the time after which a script that has not ended is killed.
const scriptLimit = 2 * time.Minute

// script is a run of docs/ci/cluster.sh with fakeKubectl.
type script struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	// output is what the script prints, and printed what was read of it.
	output  *bufio.Reader
	printed strings.Builder
}

// newScript returns a run with these arguments that is not started, in a folder of its own.
func newScript(t *testing.T, args []string, env ...string) *script {
	t.Helper()
	return newJob(t, append([]string{scriptPath(t)}, args...), env...)
}

// newJob returns a run of sh with these arguments that is not started, in a folder of its own.
func newJob(t *testing.T, args []string, env ...string) *script {
	t.Helper()
	s := &script{t: t, dir: t.TempDir()}
	programs := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(programs, "kubectl"): fakeKubectl, s.path("calls"): ""} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd = exec.Command("sh", args...)
	s.cmd.Env = append([]string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "CALLS=" + s.path("calls"), "POOL=p", "CLAIM=c", "CLUSTER_KUBECONFIG=" + s.path("cluster.kubeconfig"),
	}, env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s
}

func scriptPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(top, "docs", "ci", "cluster.sh"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *script) path(file string) string { return filepath.Join(s.dir, file) }

// start starts the script. It is killed with its children after scriptLimit, and at the end of the test.
func (s *script) start() {
	s.t.Helper()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	s.output = bufio.NewReader(io.TeeReader(out, &s.printed))
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	kill := func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // all may have ended
	}
	limit := time.AfterFunc(scriptLimit, kill)
	s.t.Cleanup(func() { limit.Stop(); kill() })
}

// readUntil reads the output of the script until a line that contains a text.
func (s *script) readUntil(want string) {
	s.t.Helper()
	for {
		line, err := s.output.ReadString('\n')
		if err == nil && strings.Contains(line, want) {
			return
		}
		if err != nil {
			s.t.Fatalf("the script has not printed %q: %v\n%s", want, err, &s.printed)
		}
	}
}

// wait waits until the script has ended, and no process has its output open, and returns its exit code.
func (s *script) wait() (code int) {
	s.t.Helper()
	if _, err := io.Copy(io.Discard, s.output); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // the exit code says it
	return s.cmd.ProcessState.ExitCode()
}

// calls returns the calls of kubectl that contain a text.
func (s *script) calls(text string) (found []string) {
	s.t.Helper()
	raw, err := os.ReadFile(s.path("calls"))
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

// repeatedReports returns how many times the script may have repeated a report: every tenth renewal that fails, and a slow
// machine gets that far in any test.
func (s *script) repeatedReports() int {
	s.t.Helper()
	return len(s.calls("annotate")) / 10
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
			kubeconfig, elsewhere := s.path("cluster.kubeconfig"), s.path("elsewhere")
			if err := os.WriteFile(elsewhere, []byte("theirs"), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{kubeconfig, kubeconfig + ".hub"} {
				if err := put(path, elsewhere); err != nil {
					t.Fatal(err)
				}
			}
			s.start()
			if code := s.wait(); code != 0 {
				t.Fatalf("exit code %d: %s", code, &s.printed)
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
				if code := s.wait(); code != want {
					t.Errorf("exit code %d, want %d: -1 if it or its kubectl had to be killed\n%s", code, want, &s.printed)
				}
				if released := s.calls("delete clusterclaim c"); len(released) != 1 {
					t.Errorf("it released the claim %d times", len(released))
				}
			})
		}
	}
}

// A job that waits says why. If the script is killed, the kubectl that waits ends, too.
func TestTheScriptSaysWhyTheClaimWaits(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"claim", "run"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, []string{command, "true"}, "REPORT_INTERVAL=0.1", "HEARTBEAT_TIMEOUT=10s", "WAIT=trap 'echo it ends; exit' TERM; while :; do sleep 0.1; done")
			s.start()
			s.readUntil("claim c waits: there is no pool p")
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.cmd.Process.Wait(); err != nil { // until then, the process exists
				t.Fatal(err)
			}
			s.readUntil("it ends")
			s.wait()
			if said := strings.Count(s.printed.String(), "claim c waits"); said != 1 {
				t.Errorf("it says %d times why it waits:\n%s", said, &s.printed)
			}
		})
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
		says     string
	}{
		"claim: the cluster is ready": {[]string{"claim"}, "WAIT=", 0, false, ""},
		"claim: the hub does not know the job": {
			[]string{"claim"},
			"WHOAMI=echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1", 1, false,
			"cluster.sh: kubectl cannot log in to the hub: see its error above. If the hub refuses the token, that may be wrong, expired or for another hub: see",
		},
		"claim: the job may create no claims": {
			[]string{"claim"},
			"CREATE=echo 'Error from server (Forbidden): User \"ci\" cannot create resource' >&2; exit 1", 1, false,
			"cannot create resource: if a right is missing, bind Role claims to User ci: see docs/ci/README.md",
		},
		"claim: the wait times out":                                   {[]string{"claim"}, "WAIT=exit 1", 1, true, "cluster.sh: claim c has no running cluster: there is no pool p"},
		"claim: the claim is another job's":                           {[]string{"claim"}, "CREATE=echo 'Error from server (AlreadyExists): exists' >&2; exit 1", 1, false, "exists. Another job may use that claim: set CLAIM"},
		"claim: the hub may have created it":                          {[]string{"claim"}, "CREATE=echo 'Unable to connect' >&2; exit 1", 1, true, ""},
		"claim: HEARTBEAT_TIMEOUT is not valid":                       {[]string{"claim"}, "HEARTBEAT_TIMEOUT=1m30s", 1, false, "write seconds or minutes"},
		"claim: HEARTBEAT_TIMEOUT is too short for the hub":           {[]string{"claim"}, "HEARTBEAT_TIMEOUT=9s", 1, false, "the hub ignores a heartbeat of less than 10s"},
		"claim: there is no pool, and the claim may be another job's": {[]string{"claim"}, "POOL=", 1, false, "cluster.sh: POOL is not set"},
		"claim: there is no name":                                     {[]string{"claim"}, "CLAIM=", 1, false, "cluster.sh: CLAIM is not set"},
		"run: there is no command":                                    {[]string{"run"}, "WAIT=", 1, false, "cluster.sh: run needs a command"},
		"run: the command succeeds":                                   {[]string{"run", "true"}, "WAIT=", 0, true, ""},
		"run: the account may not patch claims":                       {[]string{"run", "true"}, "CAN_I=exit 1", 0, true, "cluster.sh: ci may not patch claims, so this claim has no heartbeat: "},
		"run: the command fails":                                      {[]string{"run", "sh", "-c", "exit 7"}, "WAIT=", 7, true, ""},
		"run: the wait times out":                                     {[]string{"run", "true"}, "WAIT=exit 1", 1, true, ""},
		"run: the claim is another job's":                             {[]string{"run", "true"}, "CREATE=echo 'Error from server (AlreadyExists): exists' >&2; exit 1", 1, false, ""},
		"release":                                                     {[]string{"release"}, "WAIT=", 0, true, ""},
		"release: the name begins and ends with other characters":     {[]string{"release"}, "CLAIM=-_C!", 0, true, ""},
		"release: the name has no other characters":                   {[]string{"release"}, "CLAIM=-_!", 1, false, "cluster.sh: CLAIM is -_!: it has none of a-z, A-Z and 0-9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.args, c.env)
			s.start()
			code := s.wait()
			if released := len(s.calls("delete clusterclaim c")) > 0; code != c.code || released != c.released {
				t.Errorf("exit code %d, released: %t; want %d, %t\n%s", code, released, c.code, c.released, &s.printed)
			}
			if !strings.Contains(s.printed.String(), c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, &s.printed)
			}
		})
	}
}

// untilRenewed is a shell command that returns when the heartbeat has been renewed, or was refused, $RENEWALS times, and file
// "end" exists.
const untilRenewed = `while [ "$(grep -c annotate "$CALLS")" -lt "$RENEWALS" ] || [ ! -e "$(dirname "$CALLS")/end" ]; do sleep 0.1; done`

// A job must not lose its cluster without a word: its log says that the hub refuses the heartbeat, and what ends the claim.
func TestTheScriptReportsHeartbeatsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotate, want    string
		renewals, reports int
	}{
		"it is accepted": {"echo", "", 4, 0},
		"it is refused, which is reported once": {
			"echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1",
			"the heartbeat of claim c was not renewed: error: You must be logged in to the server (Unauthorized). " +
				"hotspare destroys the cluster 10s after the last heartbeat. The token of this job may have expired: see docs/ci/tokens.md\n", 4, 1,
		},
		"the user loses a right":         {"echo 'Error from server (Forbidden): no' >&2; exit 1", "Error from server (Forbidden): no. hotspare destroys", 4, 1},
		"the hub is away for a moment":   {`[ "$(grep -c annotate "$CALLS")" != 2 ]`, "", 4, 0},
		"the hub is away":                {"echo 'Unable to connect to the server' >&2; exit 1", "Unable to connect to the server. hotspare destroys", 4, 1},
		"the hub is away, and then back": {`[ "$(grep -c annotate "$CALLS")" -gt 2 ]`, "the hub accepts the heartbeat of claim c again\n", 4, 2},
		"the claim is released":          {"echo 2026-11-21T12:00:00Z", "claim c was released, perhaps because its lifetime (LIFETIME: 2h) has elapsed, and its cluster is being destroyed\n", 1, 1},
		"the claim does not exist": {
			`echo 'Error from server (NotFound): clusterclaims.hive.openshift.io "c" not found' >&2; exit 1`,
			"claim c does not exist any more, and its cluster is destroyed\n", 1, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, []string{"run", "sh", "-c", untilRenewed}, "HEARTBEAT_TIMEOUT=10s", "ANNOTATE="+c.annotate, fmt.Sprintf("RENEWALS=%d", c.renewals))
			s.start()
			if c.want != "" {
				s.readUntil(c.want)
			}
			if err := os.WriteFile(s.path("end"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code := s.wait()
			if reports := strings.Count(s.printed.String(), "cluster.sh: "); code != 0 || reports < c.reports || reports > c.reports+s.repeatedReports() {
				t.Errorf("exit code %d, %d reports, want %d:\n%s", code, reports, c.reports, &s.printed)
			}
		})
	}
}

// "claim" leaves a process behind that renews the heartbeat. The log of the job shows its reports, and its output is not kept open.
func TestTheReportsOfTheProcessThatOutlivesTheScript(t *testing.T) {
	t.Parallel()
	job := `HEARTBEAT_PID=$$ sh "$0" claim 2>&1 | cat; ` + untilRenewed + `; echo tests have ended; sh "$0" release`
	s := newJob(t, []string{"-c", job, scriptPath(t)}, "HEARTBEAT_TIMEOUT=10s", "ANNOTATE=echo 'Error from server (Forbidden): no' >&2; exit 1", "RENEWALS=2")
	if err := os.WriteFile(s.path("end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	const report = "the heartbeat of claim c was not renewed: Error from server (Forbidden): no"
	before, after, _ := strings.Cut(s.printed.String(), "tests have ended\n")
	isReported := func(log string) bool {
		n := strings.Count(log, report)
		return n >= 1 && n <= 1+s.repeatedReports()
	}
	if _, err := os.Stat("/proc/self/fd/2"); err == nil && !isReported(before) {
		t.Errorf("the log shows no report at once, or too many:\n%s", &s.printed)
	}
	if !isReported(after) {
		t.Errorf("the release shows no report, or too many:\n%s", &s.printed)
	}
	if left, err := filepath.Glob(s.path("cluster.kubeconfig*")); err != nil || len(left) > 0 {
		t.Errorf("the script has left %v, %v", left, err)
	}
}

// A token that expires before its job is the usual reason why a hub refuses a heartbeat: the script says so at once.
func TestTheScriptWarnsOfATokenThatExpiresEarly(t *testing.T) {
	t.Parallel()
	token := func(claims string) func() string {
		return func() string {
			return "HUB_TOKEN=e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
		}
	}
	// A token of a case is issued when the case begins: on a busy machine that is minutes after the test.
	lives := func(before, after int64) func() string {
		return func() string {
			now := time.Now().Unix()
			return token(fmt.Sprintf(`{"iss": "x", "iat": %d, "nbf": %d, "exp": %d}`, now-before, now-before-5, now+after))()
		}
	}
	const expires = "expires in "
	for name, c := range map[string]struct {
		token func() string
		env   []string
		warns string
	}{
		"GitLab, without a timeout of the job":     {lives(0, 300), []string{"CI_JOB_TIMEOUT=3600"}, expires},
		"GitLab, with one":                         {lives(600, 4800), []string{"CI_JOB_TIMEOUT=5400"}, ""},
		"elsewhere, for less than the lifetime":    {lives(0, 3600), []string{"LIFETIME=1h30m"}, expires},
		"elsewhere, for the lifetime":              {lives(0, 6500), []string{"LIFETIME=1h30m"}, ""},
		"elsewhere, for less than the default":     {lives(0, 7000), nil, expires},
		"elsewhere, and the lifetime is not valid": {lives(0, 300), []string{"LIFETIME=1 day"}, ""},
		"a token that does not expire":             {token(`{"iss": "x"}`), nil, ""},
		"a token that has expired":                 {lives(7000, -600), nil, "expired "},
		"one that was valid for long enough":       {lives(7000, -600), []string{"CI_JOB_TIMEOUT=3600"}, "expired "},
		"one, and the lifetime is not valid":       {lives(7000, -600), []string{"LIFETIME=1.5h"}, "expired "},
		"a token that is opaque":                   {func() string { return "HUB_TOKEN=secret" }, nil, ""},
		"GitHub":                                   {lives(0, 300), []string{"ACTIONS_ID_TOKEN_REQUEST_URL=https://x"}, ""},
		"a stored secret":                          {lives(0, 300), []string{"HUB="}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, []string{"claim"}, append([]string{"HUB=https://hub", c.token()}, c.env...)...)
			s.start()
			code := s.wait()
			_, warning, warns := strings.Cut(s.printed.String(), "cluster.sh: warning: the token of this job ")
			if code != 0 || warns != (c.warns != "") || !strings.HasPrefix(warning, c.warns) {
				t.Errorf("exit code %d, it does not warn with %q:\n%s", code, c.warns, &s.printed)
			}
		})
	}
}

func TestACommandKeepsTheStandardInputOfTheScript(t *testing.T) {
	t.Parallel()
	s := newScript(t, []string{"run", "sh", "-s"})
	s.cmd.Stdin = strings.NewReader("echo from standard input\n")
	s.start()
	s.readUntil("from standard input")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &s.printed)
	}
}

func TestAJobEndsWhenItsClaimIsGone(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`echo 'Error from server (NotFound): clusterclaims.hive.openshift.io "c" not found'; exit 1`: "it was released, and does not exist any more",
		`echo 2026-11-29T20:00:00Z/`: "it was released, and is being deleted",
		`echo /ClusterDeleted`:       "its cluster was deleted",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, []string{"run", "true"}, "REPORT_INTERVAL=0.1", "WAIT=exec sleep 1000", "STATE="+state)
			s.start()
			s.readUntil("claim c has no running cluster: " + want)
			if code := s.wait(); code == 0 {
				t.Error("exit code 0")
			}
		})
	}
}
