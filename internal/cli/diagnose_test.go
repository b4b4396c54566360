package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// unpack returns the content of a tar.gz archive as one text.
func unpack(t *testing.T, raw []byte) string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(h.Name + "\n")
		if _, err := io.Copy(&out, archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiagnoseWritesABundleOnce(t *testing.T) {
	const value = "correct-horse-battery"
	secret := &corev1.Secret{ObjectMeta: aged("default", "of-pet", 0), Data: map[string][]byte{"x": []byte(value)}}
	objects := append(world(), attempt("pet", 0, "level=fatal msg=no "+value+"\n"), secret)
	r := newRig(t, interceptor.Funcs{}, objects...)
	t.Chdir(t.TempDir())
	if code := r.run("cluster", "diagnose", "pet", "-o", "pet.tgz"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	for _, want := range []string{"pet.tgz written (", "Diagnostics of cluster default/pet", "requested with hotspare cluster diagnose", "the cluster's API: "} {
		if !strings.Contains(r.stdout.String(), want) {
			t.Errorf("it prints no %q: %s", want, r.stdout.String())
		}
	}
	raw, err := os.ReadFile("pet.tgz")
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, raw)
	if strings.Contains(got, value) || !strings.Contains(got, "level=fatal msg=no REDACTED") || !strings.Contains(got, "kind: ClusterDeployment") {
		t.Errorf("the bundle is\n%s", got)
	}
	if info, err := os.Stat("pet.tgz"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if code := r.run("cluster", "diagnose", "pet", "-o", "pet.tgz"); code != 1 || !strings.Contains(r.stderr.String(), "exists already") {
		t.Errorf("a file was overwritten: exit code %d, %s", code, r.stderr.String())
	}
	if code := r.run("cluster", "diagnose", "pet", "-o", "-"); code != 0 || !strings.Contains(unpack(t, []byte(r.stdout.String())), "pet-20261121T120000Z/summary.txt") {
		t.Errorf("exit code %d: %s", code, r.stderr.String())
	}
	for range 2 {
		r.run("cluster", "diagnose", "pet")
	}
	if _, err := os.Stat("pet-20261121T120000Z.tar.gz"); err != nil || !strings.Contains(r.stderr.String(), "exists already") {
		t.Errorf("%v, %s", err, r.stderr.String())
	}
}

// The user of a claim may not list the Secrets of its cluster: texts are in a bundle only if the user wants that.
func TestDiagnoseKeepsUncheckedTextsOnRequestOnly(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*corev1.SecretList); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
		}
		return c.List(ctx, list, opts...)
	}}
	r := newRig(t, forbidden, append(world(), attempt("pet", 0, "level=fatal msg=no quota\n"))...)
	for _, tc := range []struct {
		flags []string
		want  bool
	}{{nil, false}, {[]string{"--keep-texts"}, true}} {
		if code := r.run(append([]string{"cluster", "diagnose", "pet", "-o", "-"}, tc.flags...)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, r.stderr.String())
		}
		got := unpack(t, []byte(r.stdout.String()))
		if strings.Contains(got, "level=fatal") != tc.want || !strings.Contains(got, "the Secrets in namespace default are not known: you may not read it") {
			t.Errorf("with %q, the bundle is\n%s", tc.flags, got)
		}
	}
}
