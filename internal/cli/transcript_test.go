package cli

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

var update = flag.Bool("update", false, "write testdata anew")

// testdata is absolute, for tests that change the working folder.
var testdata = func() string {
	path, err := filepath.Abs("testdata")
	base.MustSucceed(err)
	return path
}()

// TestTranscripts compares what a person types and sees with the files in
// testdata. Lines on standard error begin with "! ".
func TestTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"status":                 {"status", "status -o json", "status -o name"},
		"pool-list":              {"pool list", "pool ls -A", "pool list -o name", "pool list -n nowhere", "pool list -n team-a -o yaml"},
		"pool-create":            {"pool create ci --size 4 --running 1 --max-size 10", "pool list -o name", "pool create dev", "pool create x --image-set none", "pool create y -n team-a -o name"},
		"pool-dry-run":           {"pool create ci --size 4 --claim-lifetime 8h --fake --dry-run", "pool create ci --dry-run -o name", "pool list -o name"},
		"pool-describe":          {"pool describe dev", "pool describe bare -n team-a", "pool describe nope", "pool describe dev -n empty"},
		"pool-scale":             {"pool scale dev --size 5 --running 2", "pool scale dev --running 9", "pool scale dev --size 4", "pool scale dev --size 0", "pool scale dev", "pool scale nope --size 1", "pool scale dev --size -1"},
		"pool-delete":            {"pool delete dev", "pool delete dev"},
		"pool-plan":              {plan("dev.yaml"), plan("dev.yaml -f testdata/plan/edit.yaml"), plan("empty.yaml"), plan("empty.yaml --complete --platforms local,none"), plan("settled.yaml"), plan("resuming.yaml"), plan("odd.yaml"), plan("dying.yaml --complete"), plan("settled.yaml -f testdata/plan/resuming.yaml")},
		"pool-plan-json":         {plan("dev.yaml -o json"), plan("settled.yaml -o yaml"), plan("odd.yaml -o json --pool odd"), plan("dev.yaml -o name")},
		"pool-plan-choice":       {plan("settled.yaml -f testdata/plan/dev.yaml -n default --pool drained"), plan("settled.yaml --pool nope"), plan("settled.yaml -n team-a --pool dev"), plan("settled.yaml --detailed-exitcode"), plan("empty.yaml --detailed-exitcode -o name")},
		"pool-plan-bad":          {plan("bad/size.yaml"), plan("bad/syntax.yaml"), plan("bad/twins.yaml"), plan("bad"), plan("nope.yaml"), "pool plan", "pool plan -f testdata -o json", plan("dev.yaml --now noon"), "pool plan -f -", "pool plan dev"},
		"pool-estimate":          {"pool estimate --every 15m --install 40m --resume 5m", "pool estimate --every 15m --install 40m", "pool estimate --every 1h --install 40m --resume 5m --destroy 10m --held 8h --at-once 50 --spare 95", "pool estimate --every 15m --install 40m --resume 5m -o json", "pool estimate dev --every 15m", "pool estimate dev --every 15m --install 9m --resume 40s", "pool estimate", "pool estimate --every 5m", "pool estimate --every 5m --install 4m --resume 1m --at-once 100", "pool estimate --every 5m --install 4m --resume 1m --at-once lots", "pool estimate nope --every 1m"},
		"claim-list":             {"claim list", "claim list -A", "claim list -o name", "claim list -n empty"},
		"claim-create":           {"claim create dev --name x --lifetime 90m", "claim create dev --name x", "claim create nope", "claim create dev --name y -o name -n default"},
		"claim-set":              {"claim create dev --count 4 --all-or-none --name x --priority 5 --lifetime 1h", "claim create dev --count 4 --all-or-none --name x", "claimset list", "claimset list -n empty", "explain claimset x", "explain claimset nope", "claim create --count 2 --pool-selector size=large,gpu --pool-selector size=small --fallback-after 5m --name y -o yaml", "claim create dev --all-or-none --name z -o name", "claimset release x nope", "claimset release z --diagnose -o name"},
		"claim-set-bad":          {"claim create dev --count 2", "claim create dev --count 0 --all-or-none", "claim create dev --count 101 --all-or-none", "claim create dev --pool-selector a=b", "claim create --all-or-none", "claim create --pool-selector =", "claim create --pool-selector a=b --fallback-after 5m", "claim create nope --all-or-none", "claim create dev --count 99 --all-or-none", "claim run dev --count 99 -- true", "claimset release"},
		"claim-extend":           {"claim extend alice --by 2h", "claim extend alice --until 2026-11-22T00:00:00Z", "claim extend alice --lifetime 24h -o name", "claim extend alice --by 1m", "claim extend bob --lifetime 25h", "claim extend bob --by 1h30m", "claim extend bob --until 2026-11-22T00:00:00Z", "claim extend nope --by 1h", "claim extend alice", "claim extend alice --by 1h --lifetime 2h", "claim extend alice --until noon"},
		"claim-release":          {"claim release alice clusterclaim.hive.openshift.io/bob", "claim release alice", "claim release bob -o name"},
		"claim-release-diagnose": {"claim release alice --diagnose", "claim release alice --diagnose"},
		"claim-release-formats":  {"claim release alice -o yaml", "claim release bob nope -o name"},
		"cluster-list":           {"cluster list", "cluster list -A -o name", "cluster list -n empty"},
		"cluster-describe":       {"cluster describe alice", "cluster describe pet", "cluster describe dev-4dddd", "cluster describe bob", "cluster describe nope"},
		"cluster-power":          {"cluster hibernate alice", "cluster resume alice", "cluster resume dev-3cccc"},
		"schedule-list":          {"schedule list", "schedules ls -A", "schedule list -o name", "schedule list -n empty"},
		"kubeconfig":             {"cluster kubeconfig alice", "cluster kubeconfig dev-2bbbb", "cluster kubeconfig dev-4dddd", "cluster kubeconfig bob", "cluster kubeconfig dev-2bbbb --claim", "cluster kubeconfig dev-3cccc"},
		"fleet-evaluate":         {evaluate("types.yaml region.yaml planes.yaml instances.yaml"), evaluate("types.yaml region.yaml"), evaluate("region.yaml"), evaluate("types.yaml region.yaml") + " --complete --detailed-exitcode"},
		"fleet-json":             {evaluate("types.yaml region.yaml planes.yaml instances.yaml") + " -o json", evaluate("types.yaml region.yaml") + " -o name"},
		"fleet-bad":              {evaluate("bad/slack.yaml"), evaluate("bad/word.yaml"), evaluate("types.yaml"), evaluate("types.yaml region.yaml") + " --region nope", "fleet evaluate", "fleet evaluate -f testdata/fleet/nope.yaml", "fleet evaluate -f -"},
		"fleet-import":           {"fleet import --dir ../fleet/kasconfig/testdata/head -n fleet", "fleet import --dir ../fleet/kasconfig/testdata/head -o name", "fleet import --dir ../fleet/kasconfig/testdata/head --apply -n fleet", "fleet import --dir ../fleet/kasconfig/testdata/head --apply -n fleet --pool warm", "fleet import --dir testdata/fleet", "fleet import -f testdata/fleet/types.yaml", "fleet import", "fleet import -f ../fleet/kasconfig/testdata/head/provider-configuration.yaml"},
		"usage":                  {"pool lst", "pol list", "pool create", "pool create a b", "pool create a --size x", "pool create a --size 99999999999", "claim create dev --timeout soon", "claim create dev --wait=maybe", "pool list -o xml", "pool create a --platform aws", "claim run dev make", "claim run -- make", "claim release", "claim create dev --timeout -1s", "--nope", "--version", "claim run dev -- no-such-program"},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, transcript(newRig(t, interceptor.Funcs{}, world()...), lines))
		})
	}
}

// evaluate is a command that evaluates files of testdata/fleet, always at the same time.
func evaluate(files string) string {
	line := "fleet evaluate --now 2026-03-01T12:00:00Z"
	for _, f := range strings.Fields(files) {
		line += " -f testdata/fleet/" + f
	}
	return line
}

// plan is a command that plans a file of testdata/plan, always at the same time.
func plan(file string) string { return "pool plan --now 2026-03-01T12:00:00Z -f testdata/plan/" + file }

// TestTroubleTranscripts is about hubs that are not as they should be.
func TestTroubleTranscripts(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:36443", Err: syscall.ECONNREFUSED}
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}},
	}}
	stranger := apierrors.NewUnauthorized("who are you")
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "hive.openshift.io", Resource: "clusterpools"}, "", fmt.Errorf("no rights"))
	for name, err := range map[string]error{"down": refused, "no-hotspare": missing, "unauthorized": stranger, "forbidden": denied} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return err
				},
			})
			if name == "down" {
				r.versionErr = err
			}
			compare(t, "hub-"+name, transcript(r, []string{"status", "pool list", "claim create dev", "cluster describe x"}))
		})
	}
}

func TestHubThatIsNotThere(t *testing.T) {
	r := newRig(t, interceptor.Funcs{})
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", "/home/you")
	t.Chdir(t.TempDir())
	compare(t, "hub-none", transcript(r, []string{"status", "kubectl get pods", "pool create ci --dry-run -o name -n team-a", "pool list --kubeconfig /no/such/file"}))
}

func TestNamespaceIsMadeWithThePool(t *testing.T) {
	r := newRig(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, is := o.(*hivev1.ClusterPool); is {
			ns := schema.GroupResource{Resource: "namespaces"}
			if err := c.Get(ctx, client.ObjectKey{Name: o.GetNamespace()}, newNamespace()); err != nil {
				return apierrors.NewNotFound(ns, o.GetNamespace())
			}
		}
		return c.Create(ctx, o, opts...)
	}}, world()...)
	compare(t, "pool-create-namespace", transcript(r, []string{"pool create ci -n team-b --fake", "pool create cd -n team-b --fake"}))
}

func transcript(r *rig, lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		code := r.run(strings.Fields(line)...)
		fmt.Fprintf(&b, "$ hotspare %s\n%s", line, r.stdout.String())
		for _, text := range strings.SplitAfter(r.stderr.String(), "\n") {
			if text != "" {
				b.WriteString("! " + text)
			}
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit code %d]\n", code)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name+".txt")
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew:\n%s", path, diff)
	}
}
