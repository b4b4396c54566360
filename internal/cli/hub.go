package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// hub is the API that a command talks to.
type hub struct {
	client.WithWatch
	// fetchVersion asks which Kubernetes it is.
	fetchVersion func(context.Context) (string, error)
	// fetchPodLog reads the end of a container's log; below 0 lines stand for all.
	fetchPodLog func(ctx context.Context, namespace, pod, container string, lines int) ([]byte, error)
	// url is where it is, namespace what the command works in.
	url, namespace string
}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	mustSucceed(corev1.AddToScheme(s))
	mustSucceed(hivev1.AddToScheme(s))
	mustSucceed(v1alpha1.AddToScheme(s))
	return s
}

// newRESTMapper knows the kinds that commands use, so that none has to be discovered:
// that would cost each command several requests.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterDeploymentCustomization", "ClusterProvision", "ClusterDeprovision"} {
		m.Add(hivev1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"PowerSchedule", "FleetRegion", "DataPlane", "ServiceInstance"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(v1alpha1.GroupVersion.WithKind("InstanceType"), meta.RESTScopeRoot)
	m.Add(hivev1.GroupVersion.WithKind("ClusterImageSet"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
}

func (a *app) connectToHub() (*hub, error) {
	config, namespace, err := a.loadClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "hotspare/" + a.Version
	config.QPS = -1 // one command cannot flood an API server
	config.WarningHandler = rest.NewWarningWriter(a.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	h, err := a.dial(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	h.url, h.namespace = config.Host, namespace
	return h, nil
}

func (a *app) newHubClient(config *rest.Config) (*hub, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: newRESTMapper()})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	logs := func(ctx context.Context, namespace, pod, container string, lines int) ([]byte, error) {
		o := &corev1.PodLogOptions{Container: container}
		if lines >= 0 {
			o.TailLines = new(int64(lines))
		}
		return core.Pods(namespace).GetLogs(pod, o).DoRaw(ctx)
	}
	return &hub{WithWatch: c, fetchPodLog: logs, fetchVersion: func(ctx context.Context) (string, error) {
		raw, err := d.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return "", err
		}
		var info version.Info
		err = json.Unmarshal(raw, &info)
		return info.GitVersion, err
	}}, nil
}

// withHub makes what cobra runs from a command that talks to the hub.
func (a *app) withHub(run func(ctx context.Context, h *hub, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		h, err := a.connectToHub()
		if err != nil {
			return err
		}
		for i := range args {
			args[i] = stripKindPrefix(args[i])
		}
		return h.explainAPIError(run(cmd.Context(), h, args))
	}
}

// objectKey finds an object in the command's namespace.
func (h *hub) objectKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: name}
}

// formatCommand is a command to type, with the flags that this one was given.
func (a *app) formatCommand(command string, args ...any) string {
	text := remedy.FormatCommand([]remedy.Flag{
		{Name: "-n", Value: a.flags.namespace},
		{Name: "--data-dir", Value: a.flags.dataDir},
		{Name: "--kubeconfig", Value: a.flags.kubeconfig},
		{Name: "--context", Value: a.flags.context},
	}, fmt.Sprintf(command, args...))
	return cmp.Or(a.Name, programName) + strings.TrimPrefix(text, programName)
}
