package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

var made = regexp.MustCompile(`dev-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// tidy gives the claim's random name a fixed one.
func tidy(s string) string { return made.ReplaceAllString(s, "dev-12345") }

func claimRig(t *testing.T) *rig {
	return newRig(t, served(t, "dev-1aaaa"), world()...)
}

// released fails unless no claim but those of the world is left, and no file.
func (r *rig) released() {
	r.t.Helper()
	var list hivev1.ClusterClaimList
	if err := r.hub.List(r.t.Context(), &list); err != nil {
		r.t.Fatal(err)
	}
	if n := len(list.Items); n != 2 {
		r.t.Errorf("%d claims are left, want 2", n)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "hotspare-*"))
	if err != nil || len(left) > 0 {
		r.t.Errorf("private folders are left: %v, %v", left, err)
	}
}

func TestRunGivesTheCommandItsCluster(t *testing.T) {
	r := claimRig(t)
	code := r.run("claim", "run", "dev", "--", "sh", "-c",
		`cat "$KUBECONFIG"; stat -c %a "$KUBECONFIG" "$(dirname "$KUBECONFIG")"; echo "$HOTSPARE_CLUSTER $HOTSPARE_CLAIM"; echo oops >&2`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got, want := tidy(r.stdout.String()), secretKubeconfig+"600\n700\ndev-1aaaa dev-12345\n"; got != want {
		t.Errorf("stdout is %q, want %q", got, want)
	}
	want := `claim dev-12345: Waiting
claim dev-12345: Assigned
claim dev-12345: Running on dev-1aaaa
claim dev-12345 has cluster dev-1aaaa after 0s
oops
claim dev-12345 released
`
	if got := tidy(r.stderr.String()); got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
	r.released()
}

// A claim run that was killed leaves a folder whose lock nobody holds.
func TestRunCleansUpAfterOneThatWasKilled(t *testing.T) {
	r := claimRig(t)
	var before hivev1.ClusterClaimList
	if err := r.hub.List(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	leave := func(url, name string, killed bool) string {
		t.Helper()
		claim := &hivev1.ClusterClaim{}
		claim.Namespace, claim.Name, claim.UID = before.Items[0].Namespace, name, types.UID("uid-of-"+name)
		claim.Spec.ClusterPoolName = "dev"
		if err := r.hub.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "hotspare-claim-run-") //nolint:usetesting // claim run looks for leftovers directly below the temporary folder
		if err != nil {
			t.Fatal(err)
		}
		lock, err := flock.Acquire(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "claim.json"), fmt.Sprintf(`{"hub":%q,"namespace":%q,"name":%q,"uid":%q}`, url, claim.Namespace, name, claim.UID))
		if killed {
			if err := lock.Release(); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const url = "https://127.0.0.1:36443"
	killed, runs, elsewhere := leave(url, "killed", true), leave(url, "runs", false), leave("https://elsewhere.example.com", "elsewhere", true)
	if code := r.run("claim", "run", "dev", "--", "true"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.stderr.String())
	}
	if want := "released claim killed of a killed claim run\n"; !strings.HasPrefix(r.stderr.String(), want) {
		t.Errorf("stderr is %q, want %q first", r.stderr.String(), want)
	}
	for name, there := range map[string]bool{"killed": false, "runs": true, "elsewhere": true} {
		err := r.hub.Get(t.Context(), client.ObjectKey{Namespace: before.Items[0].Namespace, Name: name}, &hivev1.ClusterClaim{})
		if (err == nil) != there {
			t.Errorf("claim %s: %v", name, err)
		}
	}
	for dir, there := range map[string]bool{killed: false, runs: true, elsewhere: false} {
		if _, err := os.Stat(dir); (err == nil) != there {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestRunExitsAsItsCommandDoes(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   int
	}{
		"success":                         {"true", 0},
		"failure":                         {"exit 42", 42},
		"crash":                           {"kill -KILL $$", 128 + 9},
		"SIGTERM is forwarded":            {`trap "exit 7" TERM; kill -TERM $PPID; while :; do :; done`, 7},
		"SIGINT is forwarded":             {`trap "exit 8" INT; kill -INT $PPID; while :; do :; done`, 8},
		"SIGHUP ends the command":         {`kill -HUP $PPID; while :; do :; done`, 128 + 1},
		"SIGTERM after an ignored Ctrl-C": {`trap "kill -TERM $PPID" INT; trap "exit 9" TERM; kill -INT $PPID; while :; do :; done`, 9},
	} {
		t.Run(name, func(t *testing.T) {
			r := claimRig(t)
			if code := r.run("claim", "run", "dev", "--", "sh", "-c", c.script); code != c.want {
				t.Errorf("exit code %d, want %d; stderr: %s", code, c.want, r.stderr.String())
			}
			r.released()
		})
	}
}

func TestRunOnATerminalLeavesCtrlCToIt(t *testing.T) {
	r := claimRig(t)
	r.terminal = true
	// The terminal sends SIGINT to the command itself: a second one, from us, would be one too many.
	code := r.run("claim", "run", "dev", "--", "sh", "-c",
		`trap "exit 8" INT; trap "exit 9" TERM; kill -INT $PPID; kill -TERM $PPID; while :; do :; done`)
	if code != 9 {
		t.Errorf("exit code %d, want 9: only SIGTERM is forwarded", code)
	}
	r.released()
}

func TestRunInterruptedWhileItWaits(t *testing.T) {
	r := newRig(t, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
			return c.Watch(ctx, list, opts...)
		},
	}, world()...)
	if code := r.run("claim", "run", "dev", "--", "true"); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if got := tidy(r.stderr.String()); !strings.HasSuffix(got, "claim dev-12345 released\nerror: interrupted\n") {
		t.Errorf("stderr is %q", got)
	}
	r.released()
}

func TestRunThatTimesOutReleases(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, world()...)
	if code := r.run("claim", "run", "dev", "--timeout", "1ms", "--", "true"); code != base.ExitTimedOut {
		t.Errorf("exit code %d, want %d", code, base.ExitTimedOut)
	}
	r.released()
}

func TestRunStopsItsCommandWithTheContext(t *testing.T) {
	r := claimRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.stdin = reader(func([]byte) (int, error) { // read once the command runs
		cancel()
		return 0, errors.New("no more")
	})
	if code := r.runIn(ctx, "claim", "run", "dev", "--", "sh", "-c", `trap "exit 5" TERM; while :; do :; done`); code != 5 && code != 143 {
		t.Errorf("exit code %d, want 5, or 143 before the trap was set", code)
	}
	r.released()
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

func TestRunHasALifetimeAsASafetyNet(t *testing.T) {
	var got *hivev1.Duration
	with := served(t, "dev-1aaaa")
	with.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if claim, ok := o.(*hivev1.ClusterClaim); ok {
			got = claim.Spec.Lifetime
		}
		return c.Create(ctx, o, opts...)
	}
	newRig(t, with, world()...).run("claim", "run", "dev", "--", "true")
	if got == nil || *got != "4h" {
		t.Errorf("lifetime is %v, want 4h", got)
	}
}

// A process that is killed right after the creation of its claim must leave a claim that ends. The claim of a user who may
// not renew the heartbeat must not end while its process lives.
func TestRunCreatesItsClaimWithAHeartbeatIfItMayRenewIt(t *testing.T) {
	for name, c := range map[string]struct {
		flag          string
		mayNot        bool
		created, says string
	}{
		"it may":               {"--heartbeat-timeout=1m", false, "1m", ""},
		"it may not":           {"--heartbeat-timeout=1m", true, "", "warning: claim dev-12345 has no heartbeat, so that the hub releases it only after its lifetime"},
		"it must not have one": {"--heartbeat-timeout=0", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			created := "no claim"
			with := served(t, "dev-1aaaa")
			with.Create = func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if claim, ok := o.(*hivev1.ClusterClaim); ok {
					created = claim.Annotations[hivev1.AnnotationHeartbeatTimeout]
				}
				return w.Create(ctx, o, opts...)
			}
			refused := make(chan struct{}, 100)
			with.Patch = func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if c.mayNot {
					refused <- struct{}{}
					return apierrors.NewForbidden(schema.GroupResource{Group: "hive.openshift.io", Resource: "clusterclaims"}, o.GetName(), errors.New("no"))
				}
				return w.Patch(ctx, o, p, opts...)
			}
			r := newRig(t, with, world()...)
			r.mayNot = c.mayNot
			r.stdin = reader(func([]byte) (int, error) { // read once the command runs
				if c.mayNot {
					<-refused
				}
				return 0, io.EOF
			})
			code := r.run("claim", "run", "dev", c.flag, "--", "cat")
			if said := tidy(r.stderr.String()); code != 0 || created != c.created || !strings.Contains(said, c.says) || (c.says == "") == strings.Contains(said, "warning") {
				t.Errorf("exit code %d, created with timeout %q, want %q; stderr: %s", code, created, c.created, said)
			}
		})
	}
}

func TestRunSaysHowToReleaseWhatItCouldNot(t *testing.T) {
	with := served(t, "dev-1aaaa")
	with.Delete = func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
		return errors.New("the hub is on fire")
	}
	r := newRig(t, with, world()...)
	if code := r.run("claim", "run", "dev", "--", "sh", "-c", "exit 3"); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	want := "warning: releasing claim dev-12345 failed: the hub is on fire\n  release it with: hotspare claim release dev-12345\n"
	if got := tidy(r.stderr.String()); !strings.HasSuffix(got, want) {
		t.Errorf("stderr is %q, want it to end in %q", got, want)
	}
}

// recordReleases records the annotation that requests a bundle of each claim that is deleted.
func recordReleases(with *interceptor.Funcs, out *[]string) {
	with.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		var claim hivev1.ClusterClaim
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), &claim); err == nil {
			*out = append(*out, claim.Annotations[hivev1.AnnotationDiagnoseAtRelease])
		}
		return c.Delete(ctx, o, opts...)
	}
}

// The request is there from the beginning, so that it holds if this process is killed, and is withdrawn on success.
func TestRunRequestsABundleUnlessItsCommandSucceeds(t *testing.T) {
	for _, c := range []struct{ flag, script, begin, end string }{
		{"--diagnose-on-failure", "true", "true", ""},
		{"--diagnose-on-failure", "exit 3", "true", "true"},
		{"--diagnose-on-failure=false", "exit 3", "", ""},
	} {
		var begin string
		var end []string
		with := served(t, "dev-1aaaa")
		recordReleases(&with, &end)
		create := with.Create
		with.Create = func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if claim, ok := o.(*hivev1.ClusterClaim); ok {
				begin = claim.Annotations[hivev1.AnnotationDiagnoseAtRelease]
			}
			if create != nil {
				return create(ctx, w, o, opts...)
			}
			return w.Create(ctx, o, opts...)
		}
		r := newRig(t, with, world()...)
		r.run("claim", "run", "dev", c.flag, "--", "sh", "-c", c.script)
		if begin != c.begin || len(end) != 1 || end[0] != c.end {
			t.Errorf("%+v: created with %q, released with %q; stderr: %s", c, begin, end, r.stderr.String())
		}
	}
}

func TestReleaseRequestsABundleBeforeItDeletes(t *testing.T) {
	for flag, want := range map[string]string{"--diagnose": "true", "--diagnose=false": ""} {
		var end []string
		with := served(t, "dev-1aaaa")
		recordReleases(&with, &end)
		if code := newRig(t, with, world()...).run("claim", "release", "alice", flag); code != 0 || len(end) != 1 || end[0] != want {
			t.Errorf("%s: exit code %d, released with %q", flag, code, end)
		}
	}
	t.Log("a request that is refused releases nothing")
	var end []string
	with := served(t, "dev-1aaaa")
	recordReleases(&with, &end)
	with.Patch = func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errors.New("you may not")
	}
	r := newRig(t, with, world()...)
	if code := r.run("claim", "release", "alice", "--diagnose"); code != 1 || len(end) > 0 || !strings.Contains(r.stderr.String(), "release it without a bundle: hotspare claim release alice") {
		t.Errorf("exit code %d, released %q: %s", code, end, r.stderr.String())
	}
}
