package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/fault"
)

const infraID = "c-12345"

var key = sdk.Credentials{AccessKeyID: "AKIAPLANTED0000001", SecretAccessKey: "planted-secret/1+2="}

// lab is the platform with a simulated EC2.
type lab struct {
	*Actuator
	ec2 *ec2test.Server
	// hibernation is whether new machines are launched with hibernation enabled.
	hibernation bool
	// secrets are the Secrets of the hub.
	secrets map[types.NamespacedName]map[string]string
}

func newLab(t *testing.T, options ...Option) *lab {
	t.Helper()
	l := &lab{ec2: ec2test.New(t), secrets: map[types.NamespacedName]map[string]string{}}
	l.ec2.AddAccessKey(key)
	l.secrets[types.NamespacedName{Namespace: "ns", Name: "aws-creds"}] = map[string]string{
		"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": key.SecretAccessKey + "\n",
	}
	l.Actuator = New(l.secret, append(options, WithEndpoint(l.ec2.URL))...)
	return l
}

func (l *lab) secret(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	data, ok := l.secrets[name]
	if !ok {
		return nil, fault.NewDenied("no Secret %s", name)
	}
	out := map[string][]byte{}
	for k, v := range data {
		out[k] = []byte(v)
	}
	return out, nil
}

// Such as those of private endpoints, or of a proxy that intercepts TLS.
func TestTheCertificateAuthoritiesOfTheHubAreTrusted(t *testing.T) {
	var authorities cabundletest.Secret
	l := newLab(t)
	front := httptest.NewTLSServer(l.ec2)
	t.Cleanup(front.Close)
	l.Actuator = New(l.secret, WithAuthorities(authorities.NewSource()), WithEndpoint(front.URL))
	authorities.SetContent(cabundletest.CertificatePEM(cabundletest.NewServer(t, http.NotFoundHandler())))
	if _, err := l.Observe(t.Context(), ref(t, infraID)); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the certificate: %v", err)
	}
	authorities.SetContent(cabundletest.CertificatePEM(front))
	if _, err := l.Observe(t.Context(), ref(t, infraID)); err != nil {
		t.Errorf("with the certificate: %v", err)
	}
}

// refOf returns a cluster with spec.platform.aws set to platform.
func refOf(t *testing.T, infraID string, platform map[string]any) cloud.Ref {
	t.Helper()
	raw, err := json.Marshal(platform)
	if err != nil {
		t.Fatal(err)
	}
	return cloud.Ref{
		Cluster:  types.NamespacedName{Namespace: "ns", Name: "c"},
		InfraID:  infraID,
		Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: raw}},
	}
}

func ref(t *testing.T, infraID string) cloud.Ref {
	t.Helper()
	return refOf(t, infraID, map[string]any{"region": "us-east-1", "credentialsSecretRef": map[string]any{"name": "aws-creds"}})
}

// tags returns the tags of a machine of cluster infraID.
func tags(infraID, name string) map[string]string {
	return map[string]string{"kubernetes.io/cluster/" + infraID: "owned", "Name": infraID + "-" + name}
}

func (l *lab) master(infraID string) string {
	return l.ec2.AddInstance(ec2test.Instance{Tags: tags(infraID, "master-0"), Hibernation: l.hibernation})
}

func (l *lab) workers(infraID string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, l.ec2.AddInstance(ec2test.Instance{Tags: tags(infraID, fmt.Sprintf("worker-us-east-1a-%d", i)), Hibernation: l.hibernation}))
	}
	return out
}

// idOf returns the instance ID of a machine: "name (i-0123)".
func idOf(machine string) string {
	_, id, _ := strings.Cut(machine, " (")
	return strings.TrimSuffix(id, ")")
}

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		l := newLab(t)
		l.hibernation = true
		change := func(t *testing.T, name string, f func(*ec2test.Instance)) {
			t.Helper()
			l.ec2.ChangeInstance(t, idOf(name), f)
		}
		return cloudtest.Cloud{
			Against:  "our EC2 simulator, which works with the AWS CLI",
			Actuator: l.Actuator,
			Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
				l.master(infraID)
				l.workers(infraID, workers)
				return ref(t, infraID)
			},
			Vanish: func(_ *testing.T, _ cloud.Ref, name string) { l.ec2.RemoveInstance(idOf(name)) },
			Break: func(t *testing.T, _ cloud.Ref, name string) {
				change(t, name, func(i *ec2test.Instance) { i.Broken = true })
			},
			Step:        l.ec2.AdvanceStates,
			Depths:      []cloud.Depth{cloud.DepthSuspend},
			GuestsAreUp: func(cloud.Ref) bool { return l.ec2.GuestsAreUp() },
			Faults: cloudtest.Faults{
				RefuseDepth: func(t *testing.T, _ cloud.Ref, _ cloud.Depth) {
					for id := range l.ec2.InstanceStates() {
						l.ec2.ChangeInstance(t, id, func(i *ec2test.Instance) { i.HibernationRefusal = noHibernation(id) })
					}
				},
				Many:     func(_ *testing.T, ref cloud.Ref, n int) { l.workers(ref.InfraID, n) },
				Throttle: func(_ *testing.T, n int) { l.ec2.ThrottleNextCalls(n) },
				Expire:   func(*testing.T) { l.ec2.ExpireAllKeys() },
				Refuse: func(t *testing.T, _ cloud.Ref, name string) {
					change(t, name, func(i *ec2test.Instance) { i.Refusal = protected(i.ID) })
				},
				Odd: func(t *testing.T, _ cloud.Ref, name string) {
					change(t, name, func(i *ec2test.Instance) { i.State = "mothballed" })
				},
				Hang:    func(*testing.T) <-chan struct{} { return l.ec2.HangEveryCall() },
				Planted: []string{key.AccessKeyID, key.SecretAccessKey},
			},
		}
	})
}

func protected(id string) *ec2test.Error {
	return &ec2test.Error{
		Status: 400, Code: "OperationNotPermitted",
		Message: "The instance '" + id + "' may not be stopped. It hears " + key.SecretAccessKey + ". Modify its 'disableApiStop' instance attribute and try again.",
	}
}

func noHibernation(id string) *ec2test.Error {
	return &ec2test.Error{
		Status: 400, Code: "UnsupportedHibernationConfiguration",
		Message: "The instance " + id + " cannot be hibernated. It hears " + key.SecretAccessKey + ".",
	}
}

func (l *lab) observe(t *testing.T, ref cloud.Ref) cloud.Machines {
	t.Helper()
	ms, err := l.Observe(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func TestEachStateIsTold(t *testing.T) {
	for state, want := range map[string]string{
		ec2test.Pending:      "Starting",
		ec2test.Running:      "Running",
		ec2test.Stopping:     "Stopping",
		ec2test.ShuttingDown: "Stopping",
		ec2test.Stopped:      "Stopped",
		ec2test.Terminated:   "",
		"mothballed":         "Unknown: EC2 reports state mothballed",
	} {
		t.Run(state, func(t *testing.T) {
			l := newLab(t)
			l.ec2.AddInstance(ec2test.Instance{State: state, Tags: tags(infraID, "worker-0")})
			got := ""
			for _, m := range l.observe(t, ref(t, infraID)) {
				got = strings.TrimSuffix(string(m.State)+": "+m.Reason, ": ")
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestWhatIsOfTheCluster(t *testing.T) {
	owned := map[string]string{"kubernetes.io/cluster/" + infraID: "owned"}
	for name, c := range map[string]struct {
		in   ec2test.Instance
		want string
	}{
		"by the tag of the installer":                {ec2test.Instance{ID: "i-1", Tags: owned}, "i-1 worker"},
		"not what is only shared":                    {ec2test.Instance{ID: "i-1", Tags: map[string]string{"kubernetes.io/cluster/" + infraID: "shared"}}, ""},
		"not by name":                                {ec2test.Instance{ID: "i-1", Tags: map[string]string{"Name": infraID + "-worker-0"}}, ""},
		"not a cluster whose infraID begins alike":   {ec2test.Instance{ID: "i-1", Tags: tags(infraID+"6", "master-0")}, ""},
		"a master by its name":                       {ec2test.Instance{ID: "i-1", Tags: tags(infraID, "master-0")}, infraID + "-master-0 (i-1) control plane"},
		"a master by its instance profile":           {ec2test.Instance{ID: "i-1", Tags: owned, Profile: infraID + "-master-profile"}, "i-1 control plane"},
		"a master by the role of Cluster API":        {ec2test.Instance{ID: "i-1", Tags: with(owned, tagRole, "control-plane")}, "i-1 control plane"},
		"a worker that is called after a master":     {ec2test.Instance{ID: "i-1", Tags: tags(infraID, "worker-master-0")}, infraID + "-worker-master-0 (i-1) worker"},
		"another cluster's profile makes no master":  {ec2test.Instance{ID: "i-1", Tags: owned, Profile: "other-master-profile"}, "i-1 worker"},
		"a role of Cluster API that is not a master": {ec2test.Instance{ID: "i-1", Tags: with(owned, tagRole, "node")}, "i-1 worker"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ec2.AddInstance(c.in)
			got := ""
			for _, m := range l.observe(t, ref(t, infraID)) {
				got = m.Name + map[bool]string{true: " control plane", false: " worker"}[m.ControlPlane]
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func with(m map[string]string, k, v string) map[string]string {
	m = maps.Clone(m)
	m[k] = v
	return m
}

// Hive reads only one page; a page may be empty without being the last one.
func TestPagesThatAreEmptyEndNoList(t *testing.T) {
	l := newLab(t)
	l.workers("other-12345", 2*ec2test.PageSize)
	l.workers(infraID, 1)
	if got := l.observe(t, ref(t, infraID)); len(got) != 1 {
		t.Errorf("saw %v", got)
	}
	if got := l.ec2.AcceptedCalls(); len(got) != 3 {
		t.Errorf("%d calls, want 3", len(got))
	}
}

// changes returns the calls so far, except read-only ones.
func (l *lab) changes() []string {
	return slices.DeleteFunc(l.ec2.AcceptedCalls(), func(c string) bool { return strings.HasPrefix(c, "Describe") })
}

func (l *lab) wantStates(t *testing.T, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, l.ec2.InstanceStates()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}
