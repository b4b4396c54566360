package bootstrap

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// JobNamespace is the namespace of Jobs in a spare cluster.
const JobNamespace = "hotspare-bootstrap"

// A Job is a program that runs in a spare cluster.
type Job struct {
	// Name is the name of the Job. It contains the version of the steps, so that it is never one of another version.
	Name string
	// Manifests are the Job and what it needs, in the order in which they are applied; the Job is the last one.
	Manifests []Manifest
	// Temporary are the objects among Manifests that are deleted when the Job has ended, in this order: its rights
	// first. The Job itself stays, and says that it has ended.
	Temporary []*unstructured.Unstructured
}

// newJob returns the Job of a step.
func newJob(step string, j v1alpha1.BootstrapJob, version string, sources map[Reference]Source) *Job {
	name := step + "-" + version[:8]
	out := &Job{Name: name}
	add := func(temporary bool, apiVersion, kind, namespace string, fields map[string]any) {
		metadata := map[string]any{"name": name, "labels": versionLabels(version)}
		switch {
		case kind == "ClusterRoleBinding":
			metadata["name"] = JobNamespace + "-" + name
		case namespace != "":
			metadata["namespace"] = namespace
		}
		object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
		for k, v := range fields {
			object[k] = v
		}
		m := newManifest(&unstructured.Unstructured{Object: object}, false)
		out.Manifests = append(out.Manifests, m)
		if temporary {
			out.Temporary = append(out.Temporary, m.Object)
		}
	}
	out.Manifests = append(out.Manifests, NewJobNamespace())
	if j.ClusterAdmin {
		add(true, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": JobNamespace, "name": name}},
		})
	}
	add(true, "v1", "ServiceAccount", JobNamespace, nil)
	add(true, "v1", "Secret", JobNamespace, map[string]any{"data": environment(j, sources)})
	add(false, "batch/v1", "Job", JobNamespace, map[string]any{"spec": jobSpec(j, name, version)})
	return out
}

// versionLabels are the labels of the objects that are deleted when a cluster takes the steps of another version.
func versionLabels(version string) map[string]any {
	return map[string]any{v1alpha1.LabelBootstrapVersion: version}
}

// NewJobNamespace returns the namespace JobNamespace.
func NewJobNamespace() Manifest {
	return newManifest(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": JobNamespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "baseline"},
	}}}, false)
}

// environment returns the environment of a Job, as the data of a Secret.
func environment(j v1alpha1.BootstrapJob, sources map[Reference]Source) map[string]any {
	out := map[string]any{}
	for _, f := range j.EnvFrom {
		r, _ := referenceOf(f)
		for key, value := range sources[r].Data {
			out[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}
	return out
}

// jobRetries is how often a failed pod of a Job is replaced. The Job waits longer each time.
const jobRetries = 3

func jobSpec(j v1alpha1.BootstrapJob, name, version string) map[string]any {
	container := map[string]any{
		"name": "bootstrap", "image": j.Image,
		"envFrom":         []any{map[string]any{"secretRef": map[string]any{"name": name}}},
		"securityContext": map[string]any{"allowPrivilegeEscalation": false},
	}
	if len(j.Command) > 0 {
		var command []any
		for _, word := range j.Command {
			command = append(command, word)
		}
		container["command"] = command
	}
	return map[string]any{
		"backoffLimit": int64(jobRetries),
		"template": map[string]any{
			"metadata": map[string]any{"labels": versionLabels(version)},
			"spec": map[string]any{
				"restartPolicy": "Never", "serviceAccountName": name, "automountServiceAccountToken": j.ClusterAdmin,
				"securityContext": map[string]any{"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers":      []any{container},
			},
		},
	}
}
