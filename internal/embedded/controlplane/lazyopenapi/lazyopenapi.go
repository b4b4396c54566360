// Package lazyopenapi serves the OpenAPI documents of an API server, and builds them when a client requests them.
//
// The documents of Kubernetes' own kinds take a fifth of the processor time of a start, and a third of the heap of an
// idle control plane. Most clusters are released before anybody has asked for them. The servers of Kubernetes build them at
// their start all the same: version 2 because a server does so before it serves, and version 3 because the
// aggregator reads the list of documents, in which each has a hash of its bytes.
//
// Here, the hash of a document of version 3 is computed from what determines it: the program, and the routes of its
// group version.
package lazyopenapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"hotspare.io/hotspare/internal/version"
)

// The paths of the documents, those of Kubernetes.
const (
	v2Path = "/openapi/v2"
	v3Path = "/openapi/v3"
)

// Install serves the documents of a server, which must have been created with SkipOpenAPIInstallation and its routes. v2
// and v3 are its completed configurations. Install must be called before the server runs.
func Install(server *genericapiserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) {
	newDocuments(server.Handler.GoRestfulContainer, v2, v3).register(server.Handler.NonGoRestfulMux)
}

// documents are the OpenAPI documents of one server.
type documents struct {
	// v2 and v3 return handlers of the documents, which they build when they are called for the first time.
	v2, v3 func() http.Handler
	index  func() index
}

// index is the list of the documents of version 3.
type index struct {
	// hashes contains a hash for each group version, such as "apis/apps/v1".
	hashes map[string]string
	json   []byte
	etag   string
	// created is when the list was created: no document is older.
	created time.Time
}

func newDocuments(container *restful.Container, v2 *common.Config, v3 *common.OpenAPIV3Config) *documents {
	return &documents{
		v2:    sync.OnceValue(func() http.Handler { return buildV2(container, *v2) }),
		v3:    sync.OnceValue(func() http.Handler { return buildV3(container, *v3) }),
		index: sync.OnceValue(func() index { return newIndex(container.RegisteredWebServices(), identifyProgram()) }),
	}
}

// buildV2 returns a handler of the document of version 2. If the document cannot be built, the handler answers with the
// error; routes.OpenAPI would end the process. config is a copy: the builder writes to it.
func buildV2(container *restful.Container, config common.Config) http.Handler {
	document, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(container.RegisteredWebServices()), &config)
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, fmt.Sprintf("building the OpenAPI document of version 2: %v", err), http.StatusInternalServerError)
		})
	}
	document.Definitions = handler.PruneDefaults(document.Definitions)
	m := mux.NewPathRecorderMux("openapi-v2")
	handler.NewOpenAPIService(document).RegisterOpenAPIVersionedService(v2Path, m)
	return m
}

// buildV3 returns a handler of the documents of version 3. The builder writes to the definitions of kinds, which all
// servers of a process share: it gets its own.
func buildV3(container *restful.Container, config common.OpenAPIV3Config) http.Handler {
	config.Definitions = config.GetDefinitions(func(kind string) spec.Ref {
		name, _ := config.GetDefinitionName(kind)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(name))
	})
	m := mux.NewPathRecorderMux("openapi-v3")
	routes.OpenAPI{V3Config: &config}.InstallV3(container, m)
	return m
}

func (d *documents) register(to *mux.PathRecorderMux) {
	to.Handle(v2Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.v2().ServeHTTP(w, r) }))
	to.Handle(v3Path, http.HandlerFunc(d.serveIndex))
	to.HandlePrefix(v3Path+"/", http.HandlerFunc(d.serveGroupVersion))
}

// newIndex returns the list of the documents that routes.OpenAPI builds of the services in a program.
func newIndex(services []*restful.WebService, program string) index {
	i := index{hashes: map[string]string{}, created: time.Now()}
	list := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, s := range services {
		groupVersion := strings.TrimPrefix(s.RootPath(), "/")
		i.hashes[groupVersion] = hashService(program, s)
		list.Paths[groupVersion] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: i.documentURL(groupVersion)}
	}
	i.json, _ = json.Marshal(list) // strings can be marshaled
	i.etag = fmt.Sprintf("%X", sha256.Sum256(i.json))
	return i
}

// documentURL returns the URL of a document that is in the list, relative to the server.
func (i index) documentURL(groupVersion string) string {
	u := url.URL{Path: path.Join(v3Path, groupVersion), RawQuery: url.Values{"hash": {i.hashes[groupVersion]}}.Encode()}
	return u.String()
}

// hashService returns a hash of what determines the document of a service.
func hashService(program string, s *restful.WebService) string {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, program, s.RootPath()) // a hash returns no error
	for _, r := range s.Routes() {
		_, _ = fmt.Fprintln(h, r.Method, r.Path, r.Operation, r.Produces, r.Consumes)
	}
	return fmt.Sprintf("%X", h.Sum(nil))
}

// identifyProgram returns what identifies the code of this program: its version, and its modules with their checksums.
var identifyProgram = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return strconv.FormatInt(time.Now().UnixNano(), 10) // no client may keep a document then
	}
	return version.Get() + "\n" + info.String()
})

func (d *documents) serveIndex(w http.ResponseWriter, r *http.Request) {
	i := d.index()
	w.Header().Set("Etag", strconv.Quote(i.etag))
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, v3Path, i.created, bytes.NewReader(i.json))
}

// serveGroupVersion serves one document. A request with a hash is redirected to the current one, as package handler3
// does; clients may keep the answer to a request with the current one.
func (d *documents) serveGroupVersion(w http.ResponseWriter, r *http.Request) {
	groupVersion, i := strings.TrimPrefix(r.URL.Path, v3Path+"/"), d.index()
	requested := r.URL.Query().Get("hash")
	if current, found := i.hashes[groupVersion]; requested != "" && found {
		if requested != current {
			http.Redirect(w, r, i.documentURL(groupVersion), http.StatusMovedPermanently)
			return
		}
		w = immutableWriter{w}
	}
	plain := *r.URL
	plain.RawQuery = "" // the handler knows another hash
	request := r.Clone(r.Context())
	request.URL = &plain
	d.v3().ServeHTTP(w, request)
}

// immutableWriter lets clients keep an answer without an error for a year.
type immutableWriter struct{ http.ResponseWriter }

// WriteHeader adds the headers to an answer without an error.
func (w immutableWriter) WriteHeader(code int) {
	if code == http.StatusOK || code == http.StatusNotModified {
		w.Header().Set("Vary", "Accept") // the same URL serves JSON and protobuf
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	w.ResponseWriter.WriteHeader(code)
}
