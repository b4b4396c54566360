package crdcheck_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hotspare.io/hotspare/config"
	"hotspare.io/hotspare/internal/manager/crdcheck"
)

// hub serves the kinds in config/crd, except some.
type hub struct {
	without []string // plurals, or a group version
	err     error
}

func (h *hub) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if h.err != nil {
		return nil, h.err
	}
	list := &metav1.APIResourceList{GroupVersion: gv}
	group, _, _ := strings.Cut(gv, "/")
	names, err := fs.Glob(config.Manifests, "crd/"+group+"_*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		_, plural, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
		if !h.lacks(plural) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural})
		}
	}
	if h.lacks(gv) || len(list.APIResources) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	return list, nil
}

func (h *hub) lacks(name string) bool {
	for _, one := range h.without {
		if one == name {
			return true
		}
	}
	return false
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		without []string
		want    []string
	}{
		"nothing":                   {},
		"one kind":                  {[]string{"machinepools"}, []string{"machinepools.hive.openshift.io (v1)"}},
		"kinds of both groups":      {[]string{"dataplanes", "clusterpools"}, []string{"clusterpools.hive.openshift.io (v1)", "dataplanes.hotspare.io (v1alpha1)"}},
		"a name that is another's":  {[]string{"clusterpool"}, nil},
		"a version of all its kind": {[]string{"hotspare.io/v1alpha1"}, ofGroup(t, "hotspare.io", "v1alpha1")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := crdcheck.ListMissingKinds(&hub{without: c.without})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ofGroup(t *testing.T, group, version string) []string {
	t.Helper()
	names, err := fs.Glob(config.Manifests, "crd/"+group+"_*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no kinds of %s: %v", group, err)
	}
	var out []string
	for _, name := range names {
		_, plural, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
		out = append(out, plural+"."+group+" ("+version+")")
	}
	return out
}

func TestItWaitsUntilAllAreThere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &hub{err: errors.New("connection refused")}
	var told []string
	ready := crdcheck.WaitUntilServed(ctx, h, func(why string) {
		told = append(told, why)
		switch len(told) { // the hub changes only between two polls
		case 1:
			h.err, h.without = nil, []string{"machinepools"}
		case 2:
			h.without = nil
		}
	})
	if !ready {
		t.Error("it gave up")
	}
	if len(told) != 2 || !strings.Contains(told[0], "connection refused") || !strings.Contains(told[1], "machinepools.hive.openshift.io (v1): apply") {
		t.Errorf("it told %q", told)
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if crdcheck.WaitUntilServed(ctx, &hub{without: []string{"dataplanes"}}, func(string) { cancel() }) {
		t.Error("it returned as if all kinds were there")
	}
}
