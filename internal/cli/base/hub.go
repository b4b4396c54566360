package base

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/up/runrecord"
)

// FormatCommandIn formats a command for the user to run in another namespace.
func (a *App) FormatCommandIn(namespace, command string, args ...any) string {
	there := *a
	there.Flags.Namespace = namespace
	return there.FormatCommand(command, args...)
}

// Hub is a client for the API server that a command uses.
type Hub struct {
	client.WithWatch
	// FetchVersion reads the Kubernetes version of the API server.
	FetchVersion func(context.Context) (string, error)
	// FetchPodLog reads the last lines of a container's log; all lines if lines is negative.
	FetchPodLog func(ctx context.Context, namespace, pod, container string, lines int) ([]byte, error)
	// URL is the address of the API server. Namespace is the namespace of the command.
	URL, Namespace string
	// IsFromEnvironment is set if $KUBECONFIG selected the API server, and no flag did.
	IsFromEnvironment bool
	// describeLastRun returns how the last hotspare up of the hub has ended; "" if that is not known.
	describeLastRun func() string
}

// ClusterAPICluster is the kind Cluster of Cluster API. Commands read it as an unstructured object.
var ClusterAPICluster = schema.GroupVersionKind{Group: clusterapi.Group, Version: clusterapi.Version, Kind: "Cluster"}

// Scheme has the kinds that commands use.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	MustSucceed(authorizationv1.AddToScheme(s))
	MustSucceed(corev1.AddToScheme(s))
	MustSucceed(hivev1.AddToScheme(s))
	MustSucceed(v1alpha1.AddToScheme(s))
	return s
}

// NewRESTMapper returns a mapper with the kinds that commands use. Discovery would cost each
// command several requests.
func NewRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterDeploymentCustomization", "ClusterProvision", "ClusterDeprovision"} {
		m.Add(hivev1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"PowerSchedule", "PoolPolicy", "ClaimPolicy", "ClaimSet", "ClusterBootstrap", "FleetRegion", "DataPlane", "ServiceInstance"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(v1alpha1.GroupVersion.WithKind("InstanceType"), meta.RESTScopeRoot)
	m.Add(hivev1.GroupVersion.WithKind("ClusterImageSet"), meta.RESTScopeRoot)
	m.Add(ClusterAPICluster, meta.RESTScopeNamespace)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
}

// ConnectToHub creates a client for the hub that the flags and the environment select.
func (a *App) ConnectToHub() (*Hub, error) {
	config, namespace, err := a.LoadClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "hotspare/" + a.Version
	config.QPS = -1 // no client-side rate limit: one command cannot overload an API server
	config.WarningHandler = rest.NewWarningWriter(a.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	h, err := a.Dial(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", config.Host, err)
	}
	h.URL, h.Namespace = config.Host, namespace
	path, err := a.KubeconfigPath()
	h.IsFromEnvironment = err == nil && path == "" && a.Flags.Context == ""
	h.describeLastRun = func() string { return a.describeLastRun(path) }
	return h, nil
}

// describeLastRun returns how the last hotspare up has ended whose data folder contains the kubeconfig at path, or
// the one that $KUBECONFIG names if path is empty; "" if that is not known.
func (a *App) describeLastRun(path string) string {
	if path == "" {
		path = os.Getenv("KUBECONFIG") // a list of files is no path
	}
	run, found := runrecord.Read(filepath.Dir(path))
	if !found || filepath.Base(path) != kubeconfigName {
		return ""
	}
	return run.Describe(a.Clock.Now())
}

func (a *App) newHubClient(config *rest.Config) (*Hub, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme, Mapper: NewRESTMapper()})
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
	return &Hub{WithWatch: c, FetchPodLog: logs, FetchVersion: func(ctx context.Context) (string, error) {
		raw, err := d.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return "", err
		}
		var info version.Info
		err = json.Unmarshal(raw, &info)
		return info.GitVersion, err
	}}, nil
}

// WithHub returns a RunE function for cobra that connects to the hub and calls run. If $KUBECONFIG
// selects a cluster of the hub in the data folder, run is called again with that hub: a cluster serves
// none of hotspare's kinds, so that the first call has changed nothing.
func (a *App) WithHub(run func(ctx context.Context, h *Hub, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		h, err := a.ConnectToHub()
		if err != nil {
			return err
		}
		for i := range args {
			args[i] = StripKindPrefix(args[i])
		}
		err = run(cmd.Context(), h, args)
		if own := a.findOwnHub(cmd.Context(), h, err); own != nil {
			h, err = own, run(cmd.Context(), own, args)
		}
		return h.ExplainAPIError(err)
	}
}

// ObjectKey returns the key of an object in the command's namespace.
func (h *Hub) ObjectKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.Namespace, Name: name}
}

// FormatCommand formats a command for the user to run, with the connection flags of the current
// command.
func (a *App) FormatCommand(command string, args ...any) string {
	text := remedy.FormatCommand([]remedy.Flag{
		{Name: "-n", Value: a.Flags.Namespace},
		{Name: "--data-dir", Value: a.Flags.DataDir},
		{Name: "--kubeconfig", Value: a.Flags.Kubeconfig},
		{Name: "--context", Value: a.Flags.Context},
	}, fmt.Sprintf(command, args...))
	return cmp.Or(a.Name, ProgramName) + strings.TrimPrefix(text, ProgramName)
}

// ObjectMeta returns the metadata for a new object in the command's namespace.
func (h *Hub) ObjectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: h.Namespace, Name: name}
}
