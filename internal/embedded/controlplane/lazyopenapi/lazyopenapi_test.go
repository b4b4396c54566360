package lazyopenapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"hotspare.io/hotspare/internal/version"
)

// Widget is a kind of the test's server.
type Widget struct {
	Size int `json:"size"`
}

// server is a server with two group versions.
type server struct {
	container *restful.Container
	v2        *common.Config
	v3        *common.OpenAPIV3Config
	built     int // how often the definitions of the kinds were requested
}

func newServer(more ...string) *server {
	s := &server{container: restful.NewContainer()}
	definitions := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		s.built++
		return map[string]common.OpenAPIDefinition{
			"hotspare.io/hotspare/internal/embedded/controlplane/lazyopenapi.Widget": {Schema: spec.Schema{SchemaProps: spec.SchemaProps{
				Description: "Widget is a kind.",
				Type:        []string{"object"},
				Properties:  map[string]spec.Schema{"size": *spec.Int64Property()},
			}}},
		}
	}
	name := func(kind string) (string, spec.Extensions) {
		return "widgets." + kind[strings.LastIndex(kind, ".")+1:], nil
	}
	info := &spec.Info{InfoProps: spec.InfoProps{Title: "Widgets", Version: "v1"}}
	s.v2 = &common.Config{ProtocolList: []string{"https"}, Info: info, GetDefinitions: definitions, GetDefinitionName: name}
	s.v3 = &common.OpenAPIV3Config{Info: info, GetDefinitions: definitions, GetDefinitionName: name}
	for _, root := range append([]string{"/api/v1", "/apis/widgets.example.com/v1"}, more...) {
		w := new(restful.WebService).Path(root).Produces(restful.MIME_JSON)
		w.Route(w.GET("/widgets").To(func(*restful.Request, *restful.Response) {}).Operation("list"+strings.ReplaceAll(root, "/", "_")).
			Writes(Widget{}).Returns(http.StatusOK, "OK", Widget{}))
		s.container.Add(w)
	}
	return s
}

// lazily returns a handler of the documents, and eagerly one of those that Kubernetes builds.
func (s *server) lazily() http.Handler {
	m := mux.NewPathRecorderMux("lazy")
	newDocuments(s.container, s.v2, s.v3).register(m)
	return m
}

func (s *server) eagerly() http.Handler {
	m := mux.NewPathRecorderMux("eager")
	routes.OpenAPI{Config: s.v2, V3Config: s.v3}.InstallV2(s.container, m)
	routes.OpenAPI{Config: s.v2, V3Config: s.v3}.InstallV3(s.container, m)
	return m
}

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// documentsOf returns the list of the documents of version 3.
func documentsOf(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	var list handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(get(t, h, v3Path).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for groupVersion, d := range list.Paths {
		out[groupVersion] = d.ServerRelativeURL
	}
	return out
}

func TestTheDocumentsAreThoseOfKubernetes(t *testing.T) {
	eager, lazy := newServer().eagerly(), newServer().lazily()
	want, got := documentsOf(t, eager), documentsOf(t, lazy)
	if len(want) != 2 || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		t.Fatalf("listed are %v, want %v", got, want)
	}
	pairs := map[string]string{v2Path: v2Path, v3Path + "/apis/unknown/v1": v3Path + "/apis/unknown/v1"}
	for groupVersion, path := range want {
		pairs[path] = got[groupVersion]
		pairs[v3Path+"/"+groupVersion] = v3Path + "/" + groupVersion
	}
	for of, path := range pairs {
		for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "text/plain"} {
			e, l := get(t, eager, of, "Accept", accept), get(t, lazy, path, "Accept", accept)
			if e.Code != l.Code || e.Body.String() != l.Body.String() {
				t.Errorf("%s, %s: %d %s, want %d %s", path, accept, l.Code, l.Body, e.Code, e.Body)
			}
			for _, header := range []string{"Content-Type", "Vary", "Cache-Control", "Etag"} {
				if e, l := e.Header().Get(header), l.Header().Get(header); e != l {
					t.Errorf("%s, %s: %s is %q, want %q", path, accept, header, l, e)
				}
			}
			if e, l := e.Header().Get("Expires") != "", l.Header().Get("Expires") != ""; e != l {
				t.Errorf("%s, %s: has an end: %v, want %v", path, accept, l, e)
			}
		}
	}
}

func TestNothingIsBuiltForTheList(t *testing.T) {
	s := newServer()
	h := s.lazily()
	list := documentsOf(t, h)
	if s.built != 0 {
		t.Errorf("the kinds were described %d times", s.built)
	}
	if get(t, h, list["api/v1"]); s.built == 0 {
		t.Error("the kinds were never described: the test checks nothing")
	}
	before := s.built
	if get(t, h, list["api/v1"]); s.built != before {
		t.Error("the kinds were described again")
	}
}

func TestAnOldURLLeadsToTheDocument(t *testing.T) {
	h := newServer().lazily()
	current := documentsOf(t, h)["api/v1"]
	w := get(t, h, v3Path+"/api/v1?hash=OLD")
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != current {
		t.Errorf("%d to %q, want %q", w.Code, w.Header().Get("Location"), current)
	}
	if w := get(t, h, v3Path+"/apis/unknown/v1?hash=OLD"); w.Code == http.StatusMovedPermanently {
		t.Errorf("a document that does not exist is at %s", w.Header().Get("Location"))
	}
	etag := get(t, h, current).Header().Get("Etag")
	if w := get(t, h, current, "If-None-Match", etag); w.Code != http.StatusNotModified || w.Header().Get("Cache-Control") == "" {
		t.Errorf("the same document again: %d, %v", w.Code, w.Header())
	}
}

func TestADocumentThatCannotBeBuiltIsAnError(t *testing.T) {
	s := newServer()
	s.v2.GetDefinitions = func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil }
	h := s.lazily()
	for range 2 {
		if w := get(t, h, v2Path); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Widget") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// A client may keep a document for a year: its URL must change when the program or its routes do.
func TestTheHashDependsOnTheProgram(t *testing.T) {
	services := newServer().container.RegisteredWebServices()
	one, other := newIndex(services, "one"), newIndex(services, "other")
	if one.documentURL("api/v1") == other.documentURL("api/v1") || one.etag == other.etag {
		t.Errorf("two programs have one URL: %s", one.documentURL("api/v1"))
	}
	if p := identifyProgram(); !strings.Contains(p, "hotspare.io/hotspare") || !strings.Contains(p, version.Get()) {
		t.Errorf("the program is identified by %q", p)
	}
}

func TestTheHashDependsOnTheRoutes(t *testing.T) {
	first, same := documentsOf(t, newServer().lazily()), documentsOf(t, newServer().lazily())
	if !maps.Equal(first, same) {
		t.Errorf("%v and %v", first, same)
	}
	hashes := map[string]bool{}
	for _, path := range first {
		u, err := url.Parse(path)
		if err != nil || len(u.Query().Get("hash")) != 64 {
			t.Errorf("%s, %v", path, err)
		}
		hashes[u.Query().Get("hash")] = true
	}
	if len(hashes) != len(first) {
		t.Error("two documents have one hash")
	}
	s := newServer("/apis/more.example.com/v1")
	w := s.container.RegisteredWebServices()[0]
	w.Route(w.POST("/widgets").To(func(*restful.Request, *restful.Response) {}).Operation("create"))
	changed := documentsOf(t, s.lazily())
	if len(changed) != 3 || changed["api/v1"] == first["api/v1"] || changed["apis/widgets.example.com/v1"] != first["apis/widgets.example.com/v1"] {
		t.Errorf("%v, before %v", changed, first)
	}
}
