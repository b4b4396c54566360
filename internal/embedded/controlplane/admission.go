package controlplane

import (
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

// admissionPlugins returns the admission plugins of kube-apiserver. The plugin that applies
// MutatingAdmissionPolicies reads the schemas of the given group versions when it needs them.
//
// The unmodified plugin lists the schemas when it is created and then every five seconds, and
// rejects writes that a policy would change while the schema of their kind is not in its list.
func admissionPlugins(groupVersions []string) *admission.Plugins {
	plugins := admission.NewPlugins()
	kubeoptions.RegisterAllAdmissionPlugins(plugins)
	lifecycle.Register(plugins)
	validatingwebhook.Register(plugins)
	mutatingwebhook.Register(plugins)
	validating.Register(plugins)
	plugins.Register(mutating.PluginName, func(config io.Reader) (admission.Interface, error) {
		plugin, err := mutating.NewPlugin(config)
		return mutatingPlugin{plugin, groupVersions}, err
	})
	return plugins
}

// mutatingPlugin replaces the client with which its plugin reads schemas.
type mutatingPlugin struct {
	*mutating.Plugin
	groupVersions []string
}

// SetExternalKubeClientSet passes the plugin a client whose schemas include those of its group versions.
func (p mutatingPlugin) SetExternalKubeClientSet(c kubernetes.Interface) {
	p.Plugin.SetExternalKubeClientSet(schemaClientset{c, p.groupVersions})
}

// SetRESTMapper passes the plugin a mapper that finds a kind as soon as the API server serves it.
func (p mutatingPlugin) SetRESTMapper(m meta.RESTMapper) { p.Plugin.SetRESTMapper(currentMapper{m}) }

// currentMapper discovers the kinds again before it reports that one does not exist. The mapper of the API
// server does that every 30 seconds; until then, a policy with parameters of a new kind is not applied.
type currentMapper struct{ meta.RESTMapper }

// RESTMapping returns the resource of a kind.
func (m currentMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	meta.MaybeResetRESTMapper(m.RESTMapper)
	return m.RESTMapper.RESTMapping(kind, versions...)
}

type schemaClientset struct {
	kubernetes.Interface
	groupVersions []string
}

// Discovery returns the discovery client whose schemas include those of its group versions.
func (c schemaClientset) Discovery() discovery.DiscoveryInterface {
	return schemaDiscovery{c.Interface.Discovery(), c.groupVersions}
}

type schemaDiscovery struct {
	discovery.DiscoveryInterface
	groupVersions []string
}

// OpenAPIV3 returns a client whose schemas include those of its group versions.
func (d schemaDiscovery) OpenAPIV3() openapi.Client {
	c := &schemaClient{Client: d.DiscoveryInterface.OpenAPIV3(), last: map[string]string{}}
	for _, gv := range d.groupVersions {
		c.last["apis/"+gv] = ""
	}
	return c
}

// schemaClient lists schemas. The list always contains the schemas of some paths. Each of these is read again at
// each use until two consecutive lists return the same URL for it: the schema grows with each kind
// that is created.
type schemaClient struct {
	openapi.Client
	last   map[string]string // by path, the URL of the schema in the last list; "" if it was not in the list
	listed bool              // whether the API server has listed schemas
}

// Paths lists the schemas. It is not safe for concurrent use.
func (c *schemaClient) Paths() (map[string]openapi.GroupVersion, error) {
	paths, err := c.Client.Paths()
	if err != nil && c.listed {
		return nil, err
	}
	c.listed = err == nil
	if err != nil || paths == nil { // the API server is not listening yet
		paths = map[string]openapi.GroupVersion{}
	}
	for path, last := range c.last {
		url := ""
		if listed, found := paths[path]; found {
			url = listed.ServerRelativeURL()
		}
		if url == "" || url != last {
			paths[path] = &currentSchema{client: c.Client, path: path}
		}
		c.last[path] = url
	}
	return paths, nil
}

// currentSchema is the schema of a group version, read at each use.
type currentSchema struct {
	client openapi.Client
	path   string
	uses   atomic.Int64
}

// ServerRelativeURL returns a different URL each time, because the plugin caches a schema until its
// URL changes.
func (s *currentSchema) ServerRelativeURL() string {
	return s.path + "#" + strconv.FormatInt(s.uses.Add(1), 10)
}

// Schema reads the schema.
func (s *currentSchema) Schema(contentType string) ([]byte, error) {
	paths, err := s.client.Paths()
	if err != nil {
		return nil, fmt.Errorf("listing schemas: %w", err)
	}
	listed, found := paths[s.path]
	if !found {
		return nil, fmt.Errorf("the API server has no schema of %s yet", s.path)
	}
	return listed.Schema(contentType)
}
