package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/remote"
)

// Spoke reads from the API of a cluster.
type Spoke interface {
	// ReadPath returns the answer to a GET of a path of the API. An answer of more than limit bytes is an error.
	ReadPath(ctx context.Context, path string, query map[string]string, limit int64) ([]byte, error)
}

// Limits of what is read from a cluster.
const (
	maxAnswer     = 8 << 20
	maxObjects    = "500"
	maxPods       = 20 // pods whose logs are read
	maxContainers = 4  // containers of a pod whose logs are read
	logLines      = "200"
	logBytes      = 256 << 10
)

// The paths of the API that are read.
const (
	nodesPath       = "/api/v1/nodes"
	podsPath        = "/api/v1/pods"
	eventsPath      = "/api/v1/events"
	deploymentsPath = "/apis/apps/v1/namespaces/kube-system/deployments"
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
	clusterFolder   = "cluster/"
)

// addCluster adds what the API of the cluster answers within clusterLimit.
func (c *Collector) addCluster(ctx context.Context, b *diagnostics.Bundle, cd *hivev1.ClusterDeployment) {
	const part = "the cluster's API"
	if cd.Spec.ClusterMetadata == nil || cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name == "" {
		b.AddGap(part, "the cluster has no admin kubeconfig yet")
		return
	}
	if isAsleep(cd) {
		b.AddGap(part, "the cluster hibernates, and is not woken for a bundle")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clusterLimit)
	defer cancel()
	spoke, closeSpoke, trouble, err := c.Connect(ctx, cd)
	if err != nil {
		trouble = describeHubError(err)
	}
	if trouble != "" {
		b.AddGap(part, trouble)
		return
	}
	defer closeSpoke()
	r := &clusterReader{spoke: spoke, bundle: b}
	for _, add := range []func(context.Context){r.addNodes, r.addSpokeEvents, r.addDeployments, r.addAPIServices, r.addPods} {
		if add(ctx); r.unreachable { // the others would not answer, too
			return
		}
	}
}

// isAsleep reports whether a cluster hibernates or is about to. A connection could wake it.
func isAsleep(cd *hivev1.ClusterDeployment) bool {
	switch cd.Status.PowerState {
	case hivev1.StatusHibernating:
		return true
	case hivev1.StatusRunning, hivev1.ReasonFailedToStop, "":
		return false
	default:
		return cd.Spec.PowerState == hivev1.PowerHibernating
	}
}

// clusterReader adds parts of a cluster to a bundle.
type clusterReader struct {
	spoke  Spoke
	bundle *diagnostics.Bundle
	// unreachable is set once the cluster has not answered.
	unreachable bool
}

// read reads a list into a value, and reports whether it could. If not, it adds a gap.
func (r *clusterReader) read(ctx context.Context, part, path string, into any) bool {
	raw, err := r.spoke.ReadPath(ctx, path, map[string]string{"limit": maxObjects}, maxAnswer)
	if err == nil {
		if json.Unmarshal(raw, into) == nil {
			return true
		}
		r.bundle.AddGap(part, "the answer is not JSON")
		return false
	}
	r.bundle.AddGap(part, describeSpokeError(err))
	r.unreachable = r.unreachable || !isAnswer(err)
	return false
}

// isAnswer reports whether an error is an answer of the API server.
func isAnswer(err error) bool {
	return apierrors.ReasonForError(err) != "" || errors.As(err, new(*remote.TooLargeError)) || errors.As(err, new(apierrors.APIStatus))
}

func describeSpokeError(err error) string {
	var large *remote.TooLargeError
	if errors.As(err, &large) {
		return large.Error()
	}
	if apierrors.IsNotFound(err) {
		return "it does not exist"
	}
	return remote.DescribeFailure(err)
}

func (r *clusterReader) addNodes(ctx context.Context) {
	var list corev1.NodeList
	if !r.read(ctx, clusterFolder+"nodes.yaml", nodesPath, &list) {
		return
	}
	var ready int
	nodes := make([]any, 0, len(list.Items))
	for i := range list.Items {
		n := &list.Items[i]
		if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
		n.Annotations, n.Status.Images = nil, nil
		nodes = append(nodes, describe("Node", "v1", n))
	}
	r.bundle.AddNote("the cluster's API answers; %d of %d nodes are ready", ready, len(nodes))
	r.bundle.AddObject(clusterFolder+"nodes.yaml", nodes...)
}

func (r *clusterReader) addSpokeEvents(ctx context.Context) {
	var list corev1.EventList
	if r.read(ctx, clusterFolder+"events.txt", eventsPath, &list) {
		r.bundle.AddText(clusterFolder+"events.txt", diagnostics.FormatEvents(list.Items, maxEvents))
	}
}

// object is the part of an object that is kept: specs of workloads may contain secrets in clear text.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name"`
		Generation int64  `json:"generation,omitempty"`
	} `json:"metadata"`
	Status any `json:"status"`
}

func statusOf(apiVersion, kind string, meta metav1.ObjectMeta, status any) any {
	o := object{APIVersion: apiVersion, Kind: kind, Status: status}
	o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Generation = meta.Namespace, meta.Name, meta.Generation
	return o
}

func (r *clusterReader) addDeployments(ctx context.Context) {
	const name = clusterFolder + "kube-system-deployments.yaml"
	var list appsv1.DeploymentList
	if !r.read(ctx, name, deploymentsPath, &list) {
		return
	}
	var out []any
	for i := range list.Items {
		d := &list.Items[i]
		if d.Status.UnavailableReplicas > 0 {
			r.bundle.AddNote("Deployment kube-system/%s: %d replicas are not available", d.Name, d.Status.UnavailableReplicas)
		}
		out = append(out, statusOf("apps/v1", "Deployment", d.ObjectMeta, d.Status))
	}
	r.bundle.AddObject(name, out...)
}

func (r *clusterReader) addAPIServices(ctx context.Context) {
	const name = clusterFolder + "apiservices-not-available.yaml"
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Status   struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if !r.read(ctx, name, apiServicesPath, &list) {
		return
	}
	var out []any
	for _, s := range list.Items {
		if slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" && c.Status == metav1.ConditionTrue }) {
			continue
		}
		r.bundle.AddNote("APIService %s is not available", s.Metadata.Name)
		out = append(out, statusOf("apiregistration.k8s.io/v1", "APIService", s.Metadata, s.Status))
	}
	r.bundle.AddObject(name, out...)
}

// addPods adds the pods that are neither ready nor done, and the end of the logs of their containers.
func (r *clusterReader) addPods(ctx context.Context) {
	const name = clusterFolder + "pods-not-ready.yaml"
	var list corev1.PodList
	if !r.read(ctx, name, podsPath, &list) {
		return
	}
	bad := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return isDone(&p) || isReady(&p) })
	var out []any
	for i := range bad {
		p := &bad[i]
		r.bundle.AddNote("pod %s/%s is not ready: %s", p.Namespace, p.Name, describePod(p))
		out = append(out, statusOf("v1", "Pod", p.ObjectMeta, p.Status))
	}
	r.bundle.AddObject(name, out...)
	for i := range bad {
		if i == maxPods {
			r.bundle.AddGap(clusterFolder+"logs", fmt.Sprintf("logs of %d more pods: only those of the first %d are read", len(bad)-maxPods, maxPods))
			return
		}
		if r.addPodLogs(ctx, &bad[i]); r.unreachable {
			return
		}
	}
}

func isDone(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded }

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// describePod says in a few words why a pod is not ready.
func describePod(p *corev1.Pod) string {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			return fmt.Sprintf("container %s: %s, %d restarts", s.Name, s.State.Waiting.Reason, s.RestartCount)
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("container %s: exit code %d", s.Name, s.State.Terminated.ExitCode)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return "its phase is " + string(p.Status.Phase)
}

// addPodLogs adds the end of the logs of the containers of a pod that have started. A container that has
// restarted has two.
func (r *clusterReader) addPodLogs(ctx context.Context, p *corev1.Pod) {
	read := 0
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.State.Waiting != nil && s.RestartCount == 0 {
			continue // it has never run
		}
		if read++; read > maxContainers || r.unreachable {
			return
		}
		if s.RestartCount > 0 {
			r.addPodLog(ctx, p, s.Name, true)
		}
		if !r.unreachable && s.State.Waiting == nil {
			r.addPodLog(ctx, p, s.Name, false)
		}
	}
}

func (r *clusterReader) addPodLog(ctx context.Context, p *corev1.Pod, container string, previous bool) {
	name := fmt.Sprintf("%slogs/%s.%s.%s", clusterFolder, p.Namespace, p.Name, container)
	if previous {
		name += ".previous"
	}
	name += ".log"
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log", url.PathEscape(p.Namespace), url.PathEscape(p.Name))
	query := map[string]string{"container": container, "tailLines": logLines, "limitBytes": strconv.Itoa(logBytes)}
	if previous {
		query["previous"] = "true"
	}
	raw, err := r.spoke.ReadPath(ctx, path, query, 2*logBytes)
	if err != nil {
		r.bundle.AddGap(name, describeSpokeError(err))
		r.unreachable = r.unreachable || !isAnswer(err)
		return
	}
	r.bundle.AddLog(name, strings.ToValidUTF8(string(raw), "?"))
}
