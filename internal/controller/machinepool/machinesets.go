package machinepool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/machinepool"
	"hotspare.io/hotspare/internal/remote"
)

// Labels by which OpenShift's machine controllers identify machines.
const (
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelType       = "machine.openshift.io/cluster-api-machine-type"
)

// observedMachineSets is the observed state of a cluster that creates its machines itself.
type observedMachineSets struct {
	sets, scalers map[string]*unstructured.Unstructured
}

// observeMachineSets reads a cluster that creates its machines itself.
func observeMachineSets(ctx context.Context, spoke client.Client) (machinepool.MachineSetSnapshot, *observedMachineSets, error) {
	var f machinepool.MachineSetSnapshot
	r := &observedMachineSets{sets: map[string]*unstructured.Unstructured{}, scalers: map[string]*unstructured.Unstructured{}}
	sets, err := listMachineObjects(ctx, spoke, remote.MachineSet)
	if err != nil {
		return f, r, err
	}
	for i := range sets {
		s, err := parseMachineSet(&sets[i])
		if err != nil {
			return f, r, err
		}
		f.Sets, r.sets[s.Name] = append(f.Sets, s), &sets[i]
	}
	scalers, err := listMachineObjects(ctx, spoke, remote.MachineAutoscaler)
	if err != nil {
		return f, r, err
	}
	for i := range scalers {
		a := parseAutoscaler(&scalers[i])
		f.Scalers, r.scalers[a.Name] = append(f.Scalers, a), &scalers[i]
	}
	whole := newUnstructured(remote.ClusterAutoscaler, "", "default")
	err = spoke.Get(ctx, client.ObjectKeyFromObject(whole), whole)
	if client.IgnoreNotFound(err) != nil {
		return f, r, fmt.Errorf("reading the ClusterAutoscaler: %w", err)
	}
	f.Autoscaling = err == nil
	return f, r, nil
}

// listMachineObjects lists the objects of a kind in the namespace of OpenShift's machine API; a
// cluster without the kind has none.
func listMachineObjects(ctx context.Context, spoke client.Client, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var l unstructured.UnstructuredList
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := spoke.List(ctx, &l, client.InNamespace(machineNamespace)); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	return l.Items, nil
}

func newUnstructured(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// machineSet contains the fields of a MachineSet that are read.
type machineSet struct {
	Spec struct {
		Replicas *int64 `json:"replicas"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Taints       []corev1.Taint `json:"taints"`
				ProviderSpec struct {
					Value map[string]any `json:"value"`
				} `json:"providerSpec"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas int64  `json:"readyReplicas"`
		ErrorReason   string `json:"errorReason"`
		ErrorMessage  string `json:"errorMessage"`
	} `json:"status"`
}

func parseMachineSet(u *unstructured.Unstructured) (machinepool.MachineSet, error) {
	var m machineSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &m); err != nil {
		return machinepool.MachineSet{}, fmt.Errorf("reading MachineSet %s: %w", u.GetName(), err)
	}
	template := m.Spec.Template
	s := machinepool.MachineSet{
		Name: u.GetName(), Pool: u.GetLabels()[hivev1.LabelMachinePool], Role: template.Metadata.Labels[labelRole],
		Replicas: 1, Ready: m.Status.ReadyReplicas,
		Labels: template.Spec.Metadata.Labels, MachineLabels: template.Metadata.Labels, Taints: template.Spec.Taints,
		Provider:    template.Spec.ProviderSpec.Value,
		ErrorReason: m.Status.ErrorReason, ErrorMessage: m.Status.ErrorMessage,
		Deleting: u.GetDeletionTimestamp() != nil,
	}
	if m.Spec.Replicas != nil {
		s.Replicas = *m.Spec.Replicas
	}
	return s, nil
}

func parseAutoscaler(u *unstructured.Unstructured) machinepool.MachineAutoscaler {
	least, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReplicas") // 0 if it has another type: then it is set again
	most, _, _ := unstructured.NestedInt64(u.Object, "spec", "maxReplicas")
	return machinepool.MachineAutoscaler{
		Name: u.GetName(), Pool: u.GetLabels()[hivev1.LabelMachinePool], Range: machinepool.Range{Min: least, Max: most},
	}
}

// applyMachineSetStep carries out one step in a cluster that creates its machines itself.
func (t *task) applyMachineSetStep(ctx context.Context, pool string, s machinepool.Step) error {
	switch s.Verb {
	case machinepool.CreateSet:
		u, err := t.buildMachineSet(*s.Set)
		if err != nil {
			return err
		}
		return t.spoke.Create(ctx, u)
	case machinepool.UpdateSet:
		have := t.sets.sets[s.Name]
		after := have.DeepCopy()
		setPoolLabels(after, s.Set.Pool)
		if err := fillMachineSet(after, *s.Set); err != nil {
			return err
		}
		return t.spoke.Patch(ctx, after, client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{}))
	case machinepool.DeleteSet:
		return ignoreNotFound(t.spoke.Delete(ctx, newUnstructured(remote.MachineSet, machineNamespace, s.Name)))
	case machinepool.PutAutoscaler:
		return t.applyAutoscaler(ctx, pool, s)
	case machinepool.DeleteAutoscaler:
		return ignoreNotFound(t.spoke.Delete(ctx, newUnstructured(remote.MachineAutoscaler, machineNamespace, s.Name)))
	case machinepool.AddAutoscaling:
		u := newUnstructured(remote.ClusterAutoscaler, "", s.Name)
		u.Object["spec"] = map[string]any{"scaleDown": map[string]any{"enabled": true}, "balanceSimilarNodeGroups": true}
		return t.spoke.Create(ctx, u)
	}
	return fmt.Errorf("unknown step: %s", s)
}

// buildMachineSet returns a MachineSet like those that the installer creates.
func (t *task) buildMachineSet(s machinepool.MachineSet) (*unstructured.Unstructured, error) {
	u := newUnstructured(remote.MachineSet, machineNamespace, s.Name)
	u.SetLabels(map[string]string{labelCluster: t.target.InfraID})
	setPoolLabels(u, s.Pool)
	own := map[string]string{labelCluster: t.target.InfraID, labelMachineSet: s.Name, labelRole: s.Role, labelType: s.Role}
	if s.MachineLabels == nil {
		s.MachineLabels = map[string]string{}
	}
	for k, v := range own {
		s.MachineLabels[k] = v
	}
	u.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{labelCluster: t.target.InfraID, labelMachineSet: s.Name}},
		"template": map[string]any{"spec": map[string]any{"providerSpec": map[string]any{"value": s.Provider}}},
	}
	return u, fillMachineSet(u, s)
}

// setPoolLabels sets the labels that identify the pool of a MachineSet or MachineAutoscaler.
func setPoolLabels(u *unstructured.Unstructured, pool string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hivev1.LabelMachinePool], labels[hivev1.LabelManaged] = pool, "true"
	u.SetLabels(labels)
}

// fillMachineSet writes the fields of a MachineSet that a pool decides about.
func fillMachineSet(u *unstructured.Unstructured, s machinepool.MachineSet) error {
	taints := make([]any, len(s.Taints))
	for i := range s.Taints {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.Taints[i])
		if err != nil {
			return fmt.Errorf("writing taint %s: %w", s.Taints[i].Key, err)
		}
		taints[i] = raw
	}
	for _, f := range []struct {
		value any
		path  []string
	}{
		{s.Replicas, []string{"spec", "replicas"}},
		{toAnyMap(s.MachineLabels), []string{"spec", "template", "metadata", "labels"}},
		{toAnyMap(s.Labels), []string{"spec", "template", "spec", "metadata", "labels"}},
		{taints, []string{"spec", "template", "spec", "taints"}},
	} {
		if err := unstructured.SetNestedField(u.Object, f.value, f.path...); err != nil {
			return fmt.Errorf("writing MachineSet %s: %w", s.Name, err)
		}
	}
	return nil
}

func toAnyMap(labels map[string]string) map[string]any {
	out := make(map[string]any, len(labels))
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// applyAutoscaler creates or changes a MachineAutoscaler.
func (t *task) applyAutoscaler(ctx context.Context, pool string, s machinepool.Step) error {
	have := t.sets.scalers[s.Name]
	after := newUnstructured(remote.MachineAutoscaler, machineNamespace, s.Name)
	if have != nil {
		after = have.DeepCopy()
	}
	setPoolLabels(after, pool)
	after.Object["spec"] = map[string]any{
		"minReplicas": s.Range.Min, "maxReplicas": s.Range.Max,
		"scaleTargetRef": map[string]any{
			"apiVersion": remote.MachineSet.GroupVersion().String(), "kind": remote.MachineSet.Kind, "name": s.Name,
		},
	}
	if have == nil {
		return t.spoke.Create(ctx, after)
	}
	return t.spoke.Patch(ctx, after, client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{}))
}
