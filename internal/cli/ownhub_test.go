package cli

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// claimedURL is the API of the claimed cluster that $KUBECONFIG selects.
const claimedURL = "https://127.0.0.1:23287"

// newClaimedRig returns a rig whose $KUBECONFIG is that of a cluster which answers with err, and the data
// folder of the hub. The hub has the cluster at the URL.
func newClaimedRig(t *testing.T, err error, at string) (*rig, string) {
	t.Helper()
	objects := world()
	for _, o := range objects {
		if cd, ok := o.(*hivev1.ClusterDeployment); ok && cd.Spec.ClusterPoolRef != nil && cd.Spec.ClusterPoolRef.ClaimName == "alice" {
			cd.Status.APIURL = at
		}
	}
	r := newRig(t, interceptor.Funcs{}, objects...)
	dir := filepath.Dir(kubeconfigFile(t))
	t.Setenv("HOTSPARE_DATA_DIR", dir)
	raw, readErr := os.ReadFile(filepath.Join(dir, "kubeconfig"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	claimed := filepath.Join(t.TempDir(), "mine.kubeconfig")
	write(t, claimed, strings.ReplaceAll(string(raw), "https://127.0.0.1:36443", claimedURL))
	t.Setenv("KUBECONFIG", claimed)
	cluster := fake.NewClientBuilder().WithScheme(base.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	}).Build()
	r.others = map[string]client.WithWatch{claimedURL: cluster}
	return r, dir
}

func TestTheKubeconfigOfAClaimedClusterLeadsToItsHub(t *testing.T) {
	missing := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
	for name, err := range map[string]error{
		"it runs":                      missing,
		"it hibernates":                &url.Error{Op: "Get", URL: claimedURL, Err: syscall.ECONNREFUSED},
		"its credentials have expired": apierrors.NewUnauthorized("expired"),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newClaimedRig(t, err, claimedURL+"/")
			for _, command := range []string{"status", "pool list", "cluster describe alice", "explain claim alice"} {
				if code := r.run(strings.Fields(command)...); code != 0 {
					t.Errorf("%s: exit code %d: %s", command, code, r.stderr.String())
				}
				if note := r.stderr.String(); strings.Count(note, "note: $KUBECONFIG selects cluster ") != 1 || !strings.Contains(note, " of claim alice; this command uses its hub at https://127.0.0.1:36443\n") {
					t.Errorf("%s printed the note %q", command, note)
				}
			}
		})
	}
}

func TestAnotherAPIThanTheHubIsNamedWithTheRemedy(t *testing.T) {
	missing := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
	r, _ := newClaimedRig(t, missing, "https://127.0.0.1:1")
	const remedy = "$KUBECONFIG selects this API: if it is a claimed cluster, unset KUBECONFIG, or name the hub with --data-dir or --kubeconfig\n"
	if code := r.run("pool", "list"); code != 1 || !strings.Contains(r.stderr.String(), "hotspare is not installed there") || !strings.Contains(r.stderr.String(), remedy) {
		t.Errorf("a cluster of another hub: exit code %d: %s", code, r.stderr.String())
	}
	r, dir := newClaimedRig(t, missing, claimedURL)
	claimed := os.Getenv("KUBECONFIG")
	for name, args := range map[string][]string{
		"a kubeconfig that a flag names": {"pool", "list", "--kubeconfig", claimed},
		"a context that a flag names":    {"pool", "list", "--context", "hotspare"},
	} {
		if code := r.run(args...); code != 1 || strings.Contains(r.stderr.String(), "$KUBECONFIG") {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
	}
	if code := r.run("pool", "list", "--data-dir", dir); code != 0 || r.stderr.String() != "" {
		t.Errorf("the data folder: exit code %d: %s", code, r.stderr.String())
	}
}

func TestAnErrorOfTheHubIsNoReasonToLookForAnother(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Group: hivev1.GroupVersion.Group, Resource: "clusterpools"}, "nope")
	for _, err := range []error{gone, errors.New("internal error"), apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")), &metav1StatusError} {
		r, _ := newClaimedRig(t, err, claimedURL)
		if code := r.run("pool", "list"); code == 0 || strings.Contains(r.stderr.String(), "note: ") {
			t.Errorf("%v: exit code %d: %s", err, code, r.stderr.String())
		}
	}
}

var metav1StatusError = apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInternalError, Message: "internal error"}}
