package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// Reasons of failed attempts.
const (
	reasonClusterDeleted  = "ClusterDeleted"
	reasonNameTaken       = "NameTaken"
	reasonTemplateChanged = "TemplateChanged"
	reasonTimeout         = "InstallTimeout"
)

// Install creates the objects of the attempt that do not exist, or returns the progress: fault.Wait
// with the state of the Cluster until it is Available.
func (e *Executor) Install(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	cluster, err := e.getCluster(ctx, req.ClusterTarget, md.InfraID)
	if isGone(err) {
		return e.createObjects(ctx, req, md)
	}
	if err != nil {
		return install.Result{}, err
	}
	switch {
	case !isOwnedBy(cluster, req.ClusterTarget):
		return nameTakenResult(refOf(cluster)), nil
	case cluster.GetDeletionTimestamp() != nil:
		return failedResult(reasonClusterDeleted, "Cluster %s was deleted by another user while it was created: the rest of the attempt is deleted, and another attempt follows. "+
			"To delete the cluster, delete its ClusterDeployment.", md.InfraID), nil
	case clusterapi.IsPaused(cluster):
		return install.Result{}, fault.NewWait(pollInterval, "Cluster %s is paused by another user, so Cluster API does not create it: "+
			"whoever paused it can set its spec.paused to false", md.InfraID)
	case clusterapi.IsTrue(cluster, clusterapi.Available):
		return e.readResult(ctx, req, md.InfraID)
	case e.Clock.Since(cluster.GetCreationTimestamp().Time) > e.InstallLimit:
		return failedResult(reasonTimeout, "%s\nCluster %s was not Available after %s: %s", describeConditions(cluster), md.InfraID, e.InstallLimit, describeAvailable(cluster)), nil
	}
	return install.Result{}, fault.NewWait(pollInterval, "Cluster %s is not Available yet: %s", md.InfraID, describeAvailable(cluster))
}

func failedResult(reason, format string, args ...any) install.Result {
	return install.Result{Phase: install.Failed, Reason: reason, Log: fmt.Sprintf(format, args...)}
}

func nameTakenResult(ref objectRef) install.Result {
	return failedResult(reasonNameTaken, "%s exists already, and hotspare did not create it for this ClusterDeployment: delete or rename it; another attempt follows.", ref)
}

// createObjects creates the objects that metadata.json names, the Cluster last: while the Cluster
// does not exist, others may be missing.
func (e *Executor) createObjects(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	objects, err := e.buildObjects(ctx, req, md.InfraID)
	if err != nil {
		return install.Result{}, err
	}
	recorded, err := listObjects(md)
	if err != nil {
		return install.Result{}, err
	}
	for _, o := range objects {
		if !slices.Contains(recorded, refOf(o)) {
			return failedResult(reasonTemplateChanged, "The template has changed since the attempt was prepared: it now has %s, which metadata.json does not record. "+
				"Another attempt follows.", refOf(o)), nil
		}
	}
	for _, o := range objects {
		api, err := e.resourceOf(refOf(o), req.Cluster.Namespace)
		if err != nil {
			return install.Result{}, err
		}
		_, err = api.Create(ctx, o, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			there, err := api.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return install.Result{}, fmt.Errorf("reading %s: %w", refOf(o), err)
			}
			if !isOwnedBy(there, req.ClusterTarget) {
				return nameTakenResult(refOf(o)), nil
			}
		case clusterapi.IsKindMissing(err):
			return install.Result{}, fault.NewWait(missingRetry, "the hub does not serve %s of %s: install the provider of Cluster API on the hub, or correct the template",
				o.GetKind(), o.GetAPIVersion())
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			return install.Result{}, fault.NewDenied("the hub rejects %s: %w", refOf(o), err)
		case err != nil:
			return install.Result{}, fmt.Errorf("creating %s: %w", refOf(o), err)
		}
	}
	return install.Result{}, fault.NewWait(pollInterval, "Cluster %s was created and has no status yet", md.InfraID)
}

// resourceOf returns the API of the kind of an object in a namespace. The resource is derived from
// the kind, as all providers of Cluster API name it.
func (e *Executor) resourceOf(ref objectRef, namespace string) (dynamic.ResourceInterface, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, fault.NewDenied("%s has the apiVersion %q, which is not valid: %w", ref, ref.APIVersion, err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(ref.Kind))
	return e.hub.Resource(plural).Namespace(namespace), nil
}

// readResult returns the result of a Cluster that is Available; fault.Wait until its kubeconfig
// exists.
func (e *Executor) readResult(ctx context.Context, req install.Request, infraID string) (install.Result, error) {
	name := clusterapi.KubeconfigSecret(infraID)
	secret, err := e.hub.Resource(clusterapi.Secrets).Namespace(req.Cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return install.Result{}, fault.NewWait(pollInterval, "Cluster %s is Available, and Secret %s with its kubeconfig does not exist yet", infraID, name)
	}
	if err != nil {
		return install.Result{}, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	kubeconfig, err := decodeSecretKey(secret, clusterapi.KubeconfigKey)
	if err != nil || len(kubeconfig) == 0 {
		return install.Result{}, fault.NewWait(pollInterval, "Secret %s has no kubeconfig in its key %s yet", name, clusterapi.KubeconfigKey)
	}
	version, err := kubernetesVersion(req)
	if err != nil {
		return install.Result{}, err
	}
	server, err := serverOf(kubeconfig)
	if err != nil {
		return install.Result{}, fault.NewWait(pollInterval, "the kubeconfig in Secret %s cannot be parsed: correct or delete it, and Cluster API creates another", name)
	}
	return install.Result{Phase: install.Succeeded, Kubeconfig: kubeconfig, APIURL: server, Version: strings.TrimPrefix(version, "v")}, nil
}

// serverOf returns the URL of the API server of a kubeconfig. Its error does not quote the
// kubeconfig.
func serverOf(kubeconfig []byte) (string, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	return cfg.Host, nil
}

// describeAvailable returns the message of condition Available in one line.
func describeAvailable(cluster *unstructured.Unstructured) string {
	c := clusterapi.Condition(cluster, clusterapi.Available)
	if c == nil {
		return "it has no condition Available: check that the controllers of Cluster API run"
	}
	return toLine(c.Message)
}

// describeConditions returns the conditions that are not True, one line each.
func describeConditions(cluster *unstructured.Unstructured) string {
	var lines []string
	list, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["status"] != string(metav1.ConditionTrue) {
			lines = append(lines, fmt.Sprintf("%v=%v %v: %s", c["type"], c["status"], c["reason"], toLine(fmt.Sprint(c["message"]))))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// toLine joins the lines of a message: Cluster API lists causes as lines that begin with an asterisk.
func toLine(message string) string {
	var parts []string
	for _, line := range strings.Split(message, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*")); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
