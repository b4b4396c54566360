package jobs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/exec"
	"hotspare.io/hotspare/internal/recipe/runner"
)

func (l *lab) newExecutor() *exec.Executor {
	return exec.New(l.t.Context(), exec.Options{
		Runner: l.runner, Store: l.store, Catalog: l.catalog, Clock: clock.RealClock{}, Pause: time.Millisecond,
		Secrets: func(context.Context, types.NamespacedName) (map[string][]byte, error) {
			return map[string][]byte{"password": []byte(planted)}, nil
		},
	})
}

func newRequest() install.Request {
	return install.Request{ClusterTarget: install.ClusterTarget{
		Cluster: cluster, UID: "uid-c", ReleaseImage: image,
		Platform: hivev1.Platform{Exec: &hivev1.ExecPlatform{Recipe: "standin", CredentialsSecretRef: &corev1.LocalObjectReference{Name: "account"}}},
	}}
}

// poll calls do until it returns another phase than Running, or an error that is not fault.Wait.
func poll(t *testing.T, do func() (install.Result, error)) (r install.Result) {
	t.Helper()
	until(t, "it has ended", func() bool {
		var err error
		r, err = do()
		if err != nil && fault.KindOf(err) != fault.Wait {
			t.Fatal(err)
		}
		return err == nil && r.Phase != install.Running
	})
	return r
}

func (l *lab) prepare(e *exec.Executor) (md install.Metadata) {
	l.t.Helper()
	until(l.t, "the names are known", func() bool {
		var err error
		md, err = e.Prepare(l.t.Context(), newRequest())
		if err != nil && fault.KindOf(err) != fault.Wait {
			l.t.Fatal(err)
		}
		return err == nil
	})
	return md
}

const preparing = `#!/bin/sh
printf '{"apiVersion":"recipe.hotspare.io/v1","infraID":"c-%s","metadata":{"region":"r1"}}' prepared
`

func TestAnotherProcessDestroysAClusterFromItsMetadataAlone(t *testing.T) {
	l := newLab(t)
	l.w.WriteProgram(t, "prepare", preparing)
	e := l.newExecutor()
	md := l.prepare(e)
	if md.InfraID != "c-prepared" {
		t.Errorf("infraID %q", md.InfraID)
	}
	created := poll(t, func() (install.Result, error) { return e.Install(t.Context(), newRequest(), md) })
	if created.Phase != install.Succeeded || created.APIURL != "https://127.0.0.1:6443" {
		t.Fatalf("got %+v", created)
	}
	// Everything but the metadata is lost, also the definition of the recipe.
	var secrets corev1.SecretList
	if err := l.hub.List(t.Context(), &secrets, client.HasLabels{hivev1.LabelSecretType}); err != nil {
		t.Fatal(err)
	}
	for i := range secrets.Items {
		if err := client.IgnoreNotFound(l.hub.Delete(t.Context(), &secrets.Items[i])); err != nil {
			t.Fatal(err)
		}
	}
	l.restart()
	e = l.newExecutor()
	target := newRequest().ClusterTarget
	target.ReleaseImage = ""
	if r := poll(t, func() (install.Result, error) { return e.Destroy(t.Context(), target, md) }); r.Phase != install.Succeeded {
		t.Errorf("got %+v", r)
	}
	if left := l.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestAClusterWhoseImageCannotBePulledSaysSo(t *testing.T) {
	l := newLab(t)
	e := l.newExecutor()
	md := l.prepare(e)
	l.stopNode()
	if _, err := e.Install(t.Context(), newRequest(), md); err != nil {
		t.Fatal(err)
	}
	ofCreate := func(j batchv1.Job) bool { return j.Labels[hivev1.LabelInstaller] == "create" }
	until(t, "there is a Job", func() bool { return slices.ContainsFunc(l.listJobs(), ofCreate) })
	all := l.listJobs()
	l.stallPod(all[slices.IndexFunc(all, ofCreate)])
	var err error
	until(t, "the problem is reported", func() bool {
		_, err = e.Install(t.Context(), newRequest(), md)
		return err != nil
	})
	if !errors.As(err, new(*install.NotLaunchedError)) || !strings.Contains(err.Error(), "cannot pull image") {
		t.Errorf("got %v", err)
	}
}

func TestAnInfraIDOfAnotherClusterIsRejected(t *testing.T) {
	l := newLab(t)
	e := l.newExecutor()
	md := l.prepare(e)
	other := runner.Key{Cluster: types.NamespacedName{Namespace: "pools", Name: "other"}, InfraID: md.InfraID}
	// The record claims to be that of the cluster, but is in another namespace.
	forged := runner.Record{Namespace: cluster.Namespace, Name: cluster.Name, Phase: runner.Created, Kubeconfig: []byte("forged")}
	if err := l.store.WriteRecord(t.Context(), other, forged); err != nil {
		t.Fatal(err)
	}
	r, err := e.Install(t.Context(), newRequest(), md)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "belongs to ClusterDeployment pools/other") {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestProgramsRunInTheImageByDigest(t *testing.T) {
	l := newLab(t)
	l.task()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	l.stopNode()
	var pods corev1.PodList
	if err := l.hub.List(t.Context(), &pods, client.MatchingLabels{hivev1.LabelInstaller: "describe"}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	pod := &pods.Items[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "recipe", ImageID: "mirror.example/recipes@" + digest}}
	if err := l.hub.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got, want := l.task().Recipe.Definition.Image, "registry.example/recipes@"+digest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := l.hub.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := l.task().Recipe.Definition.Image; !strings.HasSuffix(got, digest) {
		t.Errorf("later, the image is %s", got)
	}
}
