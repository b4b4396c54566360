package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/remote"
)

const adoptLab = "adopt kubeconfig lab --admin-kubeconfig testdata/adopt/lab.kubeconfig"

const onAWS = " --platform aws --region eu-west-1 --infra-id lab-x7k2p --credentials-secret aws"

// adopters returns a command line with the cluster lab, outside the hub, that has three nodes and whose
// infraID is lab-x7k2p; prod is a Cluster of Cluster API on the hub, made by another user.
func adopters(t *testing.T, with interceptor.Funcs, objects ...client.Object) *rig {
	t.Helper()
	objects = append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "hub"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "aws"}, Data: map[string][]byte{"aws_access_key_id": []byte("key")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod-kubeconfig"}, Data: map[string][]byte{
			"value": []byte(strings.ReplaceAll(string(readFile(t, "testdata/adopt/lab.kubeconfig")), "api.lab", "api.prod")),
		}},
		sparePool("spares", 0), sparePool("full", 1, func(p *hivev1.ClusterPool) { p.Status.Size = 1 }),
		sparePool("listed", 0, func(p *hivev1.ClusterPool) { p.Spec.Inventory = hivev1.Inventory{{Name: "a"}} }),
	)
	r := newRig(t, with, objects...)
	r.identity = func(kubeconfig []byte) (remote.Identity, error) {
		if strings.Contains(string(kubeconfig), "other") {
			return remote.Identity{}, errors.New("the kubeconfig contains other clusters")
		}
		if strings.Contains(string(kubeconfig), "api.prod") {
			return remote.Identity{ID: "prod-uid", Nodes: []string{"p0"}, IsAdmin: true}, nil
		}
		return remote.Identity{ID: "lab-uid", Nodes: []string{"n0", "n1", "n2"}, IsAdmin: true}, nil
	}
	r.machines = func(cd *hivev1.ClusterDeployment) ([]string, error) {
		switch cd.Spec.ClusterMetadata.InfraID {
		case "lab-x7k2p":
			return []string{"m0", "m1", "m2"}, nil
		case "prod":
			return []string{"m0"}, nil
		}
		return nil, nil
	}
	return r
}

func sparePool(name string, size int32, changes ...func(*hivev1.ClusterPool)) *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: hivev1.ClusterPoolSpec{Size: size}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestAdoptTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"adopt-kubeconfig": {adoptLab, adoptLab, "cluster list"},
		"adopt-platform":   {adoptLab + onAWS + " --hibernate-after 12h", adoptLab + onAWS + " -o name"},
		"adopt-dry-run":    {adoptLab + onAWS + " --dry-run", adoptLab + " --pool spares --dry-run -o name", "cluster list"},
		"adopt-pool": {
			adoptLab + onAWS + " --pool spares", adoptLab + onAWS + " --pool spares -o name", adoptLab + onAWS,
			adoptLab + " --pool full", adoptLab + " --pool listed", adoptLab + " --pool nope",
		},
		"adopt-twice": {adoptLab, strings.Replace(adoptLab, "lab", "again", 1), adoptLab + " -n elsewhere", adoptLab + onAWS},
		"adopt-kubeconfig-bad": {
			strings.Replace(adoptLab, "lab.kube", "exec.kube", 1), strings.Replace(adoptLab, "lab.kube", "files.kube", 1), strings.Replace(adoptLab, "lab.kube", "context.kube", 1),
			strings.Replace(adoptLab, "lab.kube", "expired.kube", 1), strings.Replace(adoptLab, "lab.kube", "hub.kube", 1), strings.Replace(adoptLab, "lab.kube", "nope.kube", 1),
			strings.Replace(adoptLab, "adopt/lab.kubeconfig", "pool-list.txt", 1),
			adoptLab + strings.Replace(onAWS, "x7k2p", "wrong", 1), adoptLab + strings.Replace(onAWS, " --infra-id lab-x7k2p", "", 1),
			"adopt kubeconfig " + strings.Repeat("x", 64) + " --admin-kubeconfig testdata/adopt/lab.kubeconfig", "adopt kubeconfig lab",
			adoptLab + " --platform aws", adoptLab + " --region x",
			adoptLab + " --platform k3s", "adopt kubeconfig", "adopt cluster lab", adoptLab + " --hibernate-after -1h",
		},
		"adopt-capi": {
			"adopt capi prod --provider aws --region us-east-1 --credentials-secret aws", "adopt capi prod", "adopt capi nope", "adopt capi made",
			"adopt capi prod --provider metal3", "adopt capi prod --region x", "adopt capi prod --provider gcp",
			"adopt capi prod --provider vsphere --credentials-secret v", "adopt capi prod --provider azure --credentials-secret v --vcenter x",
		},
		"adopt-capi-dry-run": {"adopt capi prod --dry-run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := adopters(t, interceptor.Funcs{})
			r.createCluster("prod", nil)
			r.createCluster("made", map[string]string{"hotspare.io/cluster-deployment-uid": "x"})
			compare(t, name, transcript(r, lines))
		})
	}
}

// createCluster creates a Cluster of Cluster API.
func (r *rig) createCluster(name string, annotations map[string]string) {
	r.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(base.ClusterAPICluster)
	o.SetNamespace("default")
	o.SetName(name)
	o.SetAnnotations(annotations)
	if err := r.hub.Create(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

// Hubs and clusters that are not as they should be.
func TestAdoptTroubleTranscripts(t *testing.T) {
	t.Run("a cluster that does not answer", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{})
		r.identity = func([]byte) (remote.Identity, error) { return remote.Identity{}, errors.New("connection refused") }
		compare(t, "adopt-unreachable", transcript(r, []string{adoptLab}))
	})
	t.Run("a cluster that reports its infraID, and a user with few rights in it", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{})
		r.identity = func([]byte) (remote.Identity, error) {
			return remote.Identity{ID: "lab-uid", InfraID: "lab-x7k2p", Nodes: []string{"n0", "n1"}}, nil
		}
		compare(t, "adopt-openshift", transcript(r, []string{
			adoptLab + strings.Replace(onAWS, "x7k2p", "wrong", 1), adoptLab + strings.Replace(onAWS, " --infra-id lab-x7k2p", "", 1),
		}))
	})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "hive.openshift.io", Resource: "clusterdeployments"}, "lab",
		errors.New("spec.clusterPoolRef would make this cluster available to the claims on ClusterPool default/spares"))
	t.Run("a user who may not add clusters to the pool", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, is := o.(*hivev1.ClusterDeployment); is {
				return forbidden
			}
			return c.Create(ctx, o, opts...)
		}})
		compare(t, "adopt-forbidden", transcript(r, []string{adoptLab + " --pool spares"}))
		if err := r.hub.Get(t.Context(), client.ObjectKey{Name: "lab"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("namespace lab was created: %v", err)
		}
	})
	t.Run("a namespace that does not exist", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, o.GetNamespace())
		}})
		compare(t, "adopt-namespace", transcript(r, []string{adoptLab + " -n nowhere"}))
	})
	t.Run("objects of other users under the names that are needed", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lab-admin-kubeconfig"}, Data: map[string][]byte{"kubeconfig": []byte("theirs")}})
		compare(t, "adopt-foreign", transcript(r, []string{adoptLab + " --pool spares", adoptLab}))
	})
	t.Run("a cluster that hotspare installed", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{}, &hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pet"},
			Status:     hivev1.ClusterDeploymentStatus{APIURL: "https://API.lab.example.com:6443/"},
		})
		compare(t, "adopt-installed", transcript(r, []string{adoptLab}))
	})
	t.Run("a user of one namespace", func(t *testing.T) {
		r := adopters(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			if o.ApplyOptions(opts); o.Namespace == "" {
				return forbidden
			}
			return c.List(ctx, list, opts...)
		}})
		compare(t, "adopt-rights", transcript(r, []string{adoptLab}))
	})
}

// adopted returns what a hub has after an adoption, without versions.
func (r *rig) adopted(namespace string) string {
	r.t.Helper()
	var b strings.Builder
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lab-admin-kubeconfig"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "aws"}},
		&hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lab"}},
	} {
		if err := r.hub.Get(r.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			r.t.Fatal(err)
		}
		o.SetResourceVersion("")
		raw, err := json.MarshalIndent(o, "", " ")
		if err != nil {
			r.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%T %s\n", o, raw)
	}
	return b.String()
}

var errKilled = errors.New("killed")

// The command ends before or after any of its writes; repeated, it completes the adoption.
func TestAnInterruptedAdoptionIsCompletedByRepeatingIt(t *testing.T) {
	line := strings.Fields(adoptLab + onAWS + " --pool spares")
	whole := adopters(t, interceptor.Funcs{})
	if code := whole.run(line...); code != 0 {
		t.Fatal(whole.stderr.String())
	}
	want := whole.adopted("lab")
	for _, after := range []bool{false, true} {
		for at, ended := 1, false; !ended; at++ {
			writes := 0
			kill := func(write func() error) error {
				if writes++; writes != at {
					return write()
				}
				if after {
					return errors.Join(write(), errKilled)
				}
				return errKilled
			}
			r := adopters(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					var with client.CreateOptions
					if with.ApplyOptions(opts); len(with.DryRun) > 0 {
						return c.Create(ctx, o, opts...)
					}
					return kill(func() error { return c.Create(ctx, o, opts...) })
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					return kill(func() error { return c.Patch(ctx, o, p, opts...) })
				},
			})
			ended = r.run(line...) == 0
			if !ended && r.run(line...) != 0 {
				t.Fatalf("killed at write %d (after it: %t), and not completed: %s", at, after, r.stderr.String())
			}
			if diff := cmp.Diff(want, r.adopted("lab")); diff != "" {
				t.Errorf("killed at write %d (after it: %t), and completed differently:\n%s", at, after, diff)
			}
			if at > 20 {
				t.Fatal("the command never ends by itself")
			}
		}
	}
}

// Another user adopts the cluster between the checks and the writes.
func TestAnAdoptionAtTheSameTimeIsReported(t *testing.T) {
	r := adopters(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		cd, is := o.(*hivev1.ClusterDeployment)
		var with client.CreateOptions
		if with.ApplyOptions(opts); is && len(with.DryRun) == 0 {
			other := cd.DeepCopy()
			other.Namespace, other.Name = "team-b", "theirs"
			if err := c.Create(ctx, other); err != nil {
				return err
			}
		}
		return c.Create(ctx, o, opts...)
	}})
	compare(t, "adopt-at-once", transcript(r, []string{adoptLab}))
}

// A new kubeconfig replaces one that expires.
func TestAdoptingAgainReplacesTheKubeconfig(t *testing.T) {
	r := adopters(t, interceptor.Funcs{})
	if code := r.run(strings.Fields(adoptLab)...); code != 0 {
		t.Fatal(r.stderr.String())
	}
	r.stdin = strings.NewReader(strings.Replace(string(readFile(t, "testdata/adopt/lab.kubeconfig")), "lab-token", "new-token", 1))
	if code := r.run("adopt", "kubeconfig", "lab", "--admin-kubeconfig", "-"); code != 0 {
		t.Fatal(r.stderr.String())
	}
	var s corev1.Secret
	if err := r.hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "lab-admin-kubeconfig"}, &s); err != nil {
		t.Fatal(err)
	}
	if text := string(s.Data["kubeconfig"]); !strings.Contains(text, "new-token") || strings.Contains(text, "other-token") {
		t.Errorf("the kubeconfig is\n%s", text)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
