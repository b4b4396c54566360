package controlplane

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/openapi"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

func TestTheAdmissionPluginsAreThoseOfTheAPIServer(t *testing.T) {
	want := options.NewServerRunOptions().Admission.GenericAdmission.Plugins.Registered()
	got := admissionPlugins([]string{"example.com/v1"}).Registered()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("plugins (-API server +ours): %s", diff)
	}
}

// schemas is an API server's list of schemas: the path of each, and its content.
type schemas map[string]string

func (s schemas) Paths() (map[string]openapi.GroupVersion, error) {
	if s == nil {
		return nil, errors.New("it does not listen")
	}
	out := map[string]openapi.GroupVersion{}
	for path, content := range s {
		out[path] = schemaText(content)
	}
	return out, nil
}

type schemaText string

func (s schemaText) ServerRelativeURL() string     { return "?hash=" + string(s) }
func (s schemaText) Schema(string) ([]byte, error) { return []byte(s), nil }

func TestTheSchemaIsReadAtEachUseUntilItNoLongerChanges(t *testing.T) {
	const path, other = "apis/example.com/v1", "apis/example.com/v2"
	type list struct {
		served, later schemas // when it is listed, and when it is used
		want          string
		current       bool // read at each use
	}
	c := &schemaClient{last: map[string]string{path: "", other: ""}}
	for _, l := range []list{
		{served: nil, later: schemas{path: "one kind"}, want: "one kind", current: true},
		{served: schemas{"apis/apps/v1": ""}, later: schemas{path: "one kind"}, want: "one kind", current: true},
		{served: schemas{path: "one kind"}, later: schemas{path: "two kinds"}, want: "two kinds", current: true},
		{served: schemas{path: "two kinds"}, later: schemas{path: "two kinds"}, want: "two kinds", current: true},
		{served: schemas{path: "two kinds"}, later: schemas{path: "three kinds"}, want: "two kinds"},
		{served: schemas{path: "three kinds"}, later: schemas{path: "three kinds"}, want: "three kinds", current: true},
	} {
		c.Client = l.served
		paths, err := c.Paths()
		if err != nil || paths[path] == nil {
			t.Fatalf("served %v: it is not listed: %v", l.served, err)
		}
		if _, current := paths[other].(*currentSchema); !current {
			t.Errorf("served %v: %s is not read at each use", l.served, other)
		}
		if s, current := paths[path].(*currentSchema); current {
			s.client = l.later
		}
		got, err := paths[path].Schema("application/json")
		url := paths[path].ServerRelativeURL()
		if current := url != paths[path].ServerRelativeURL(); err != nil || string(got) != l.want || current != l.current {
			t.Errorf("served %v, then %v: got %q, read at each use: %t, %v", l.served, l.later, got, current, err)
		}
	}
	c.Client = schemas(nil)
	if paths, err := c.Paths(); err == nil {
		t.Errorf("an API server that ends replaces what was listed: %v", paths)
	}
}
