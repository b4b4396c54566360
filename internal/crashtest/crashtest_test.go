package crashtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// diary records what the controller did in each run.
type diary struct{ tries, today []string }

func (d *diary) note(s string) { d.today = append(d.today, s) }

func (d *diary) close(context.Context, client.Client) error {
	d.tries, d.today = append(d.tries, strings.Join(d.today, " ")), nil
	return nil
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

// maker creates Secrets a and b in namespace n, one per pass, and records what it does and whether
// it sees label l on the namespace.
func (d *diary) maker(cached, _ client.Client) []crashtest.Controller {
	d.note("start")
	return []crashtest.Controller{func(ctx context.Context) error {
		var space corev1.Namespace
		if err := cached.Get(ctx, client.ObjectKey{Name: "n"}, &space); err != nil {
			return err
		}
		for _, name := range []string{"a", "b"} {
			s := secret(name)
			if cached.Get(ctx, client.ObjectKeyFromObject(s), s) == nil {
				continue
			}
			if err := cached.Create(ctx, s); !apierrors.IsAlreadyExists(err) {
				d.note(name + strings.Repeat("!", len(space.Labels)))
				if errors.Is(err, chaos.ErrStopped) {
					d.note("stop")
				}
				return err
			}
			d.note(name + "?")
		}
		return nil
	}}
}

// scenario is one in which a user labels the namespace when Secret a exists.
func (d *diary) scenario(t *testing.T) crashtest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return crashtest.Scenario{
		Scheme: scheme, Kinds: []client.Object{&corev1.Namespace{}, &corev1.Secret{}}, Indexes: &chaos.Indexes{},
		Start: d.maker, Finally: d.close,
		Acts: []func(context.Context, client.Client) error{func(ctx context.Context, api client.Client) error {
			return api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		}},
		World: func(ctx context.Context, api client.Client) (bool, error) {
			var space corev1.Namespace
			if err := api.Get(ctx, client.ObjectKey{Name: "n"}, &space); err != nil || len(space.Labels) > 0 {
				return false, err
			}
			if err := api.Get(ctx, client.ObjectKey{Namespace: "n", Name: "a"}, secret("a")); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			before := space.DeepCopy()
			space.Labels = map[string]string{"l": ""}
			return true, api.Patch(ctx, &space, client.MergeFrom(before))
		},
	}
}

func TestEachWriteIsTheLastOnceAndLateOnce(t *testing.T) {
	d := &diary{}
	crashtest.Run(t, d.scenario(t))
	want := []string{
		"start a b!",
		"start a stop start b!", "start a stop start a? b", "start a a? b", // writes of others after a hidden write are hidden too
		"start a b! stop start", "start a b! stop start b?", "start a b! b?",
		"start a a? b b?",
	}
	if diff := cmp.Diff(want, d.tries); diff != "" {
		t.Error(diff)
	}
}

func TestEveryWriteOfControllersIsLookedAt(t *testing.T) {
	d := &diary{}
	s := d.scenario(t)
	s.Always = func(ctx context.Context, api client.Client) error {
		var list corev1.SecretList
		err := api.List(ctx, &list)
		d.note(strings.Repeat("+", len(list.Items)))
		return err
	}
	crashtest.Run(t, s)
	if want := []string{"start + a ++ b!", "start + a stop start ++ b!"}; !slices.Equal(d.tries[:2], want) {
		t.Errorf("got %q, want %q", d.tries[:2], want)
	}
}

// A namespace with a deletion timestamp is deleted with its contents.
func TestNamespacesAreSwept(t *testing.T) {
	d := &diary{}
	s := d.scenario(t)
	s.Acts = append(s.Acts, func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	})
	world := s.World
	s.World = func(ctx context.Context, api client.Client) (bool, error) {
		changed, err := world(ctx, api)
		return changed, client.IgnoreNotFound(err)
	}
	s.Start = func(cached, live client.Client) []crashtest.Controller {
		make := d.maker(cached, live)[0]
		return []crashtest.Controller{func(ctx context.Context) error { return client.IgnoreNotFound(make(ctx)) }}
	}
	s.Finally = func(ctx context.Context, api client.Client) error {
		var spaces corev1.NamespaceList
		var secrets corev1.SecretList
		err := errors.Join(api.List(ctx, &spaces), api.List(ctx, &secrets))
		if len(spaces.Items)+len(secrets.Items) > 0 {
			return errors.New("they are still there")
		}
		return err
	}
	crashtest.Run(t, s)
}
