package up

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mutationLimit bounds the wait for the API server to apply MutatingAdmissionPolicies. It reads the
// schemas of custom resources every five seconds.
const mutationLimit = time.Minute

// The probe of waitForMutations. refusedLabel is not a valid label value, so the API server rejects
// the probe as soon as the policy has changed it: before other policies see it, and regardless of
// the schema of its kind.
const (
	probeName      = "hotspare-up-probe"
	probePolicy    = probeName + ".hotspare.io"
	probeLabel     = "hotspare.io/probe"
	probeNamespace = metav1.NamespaceDefault
	refusedLabel   = "the policy is applied!"
)

// waitForMutations returns when the API server applies the MutatingAdmissionPolicies among objects
// to all kinds that they match. Until then, the API server rejects every write that one of them
// would change, or stores it unchanged.
//
// It creates a probe policy after all others, waits until that policy changes an object of each
// kind, and deletes the policy. No object is stored.
func waitForMutations(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	resources := mutatedResources(objects)
	kinds, err := resolveKinds(c.RESTMapper(), resources)
	if err != nil {
		return err
	}
	if err := createProbePolicy(ctx, c, resources); meta.IsNoMatchError(err) {
		return nil // the API server is older than the kind
	} else if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := waitForMutation(ctx, c, kind); err != nil {
			return err
		}
	}
	return deleteProbePolicy(ctx, c)
}

// waitForMutation waits until the probe policy changes an object of the kind. It applies the object: for two seconds, the
// API server delays other creations of a new kind.
func waitForMutation(ctx context.Context, c client.Client, kind schema.GroupVersionKind) error {
	answer := ""
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, mutationLimit, true, func(ctx context.Context) (bool, error) {
		probe := &unstructured.Unstructured{}
		probe.SetGroupVersionKind(kind)
		probe.SetNamespace(probeNamespace)
		probe.SetName(probeName)
		probe.SetLabels(map[string]string{probeLabel: "sent"})
		var applied bool
		applied, answer = isPolicyApplied(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(probe), fieldOwner, client.DryRunAll))
		return applied, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API server to apply MutatingAdmissionPolicies to kind %s: %w (%s)", kind.Kind, err, answer)
	}
	return nil
}

// isPolicyApplied reports whether the policy has changed the probe that the API server answered
// with err, and otherwise returns the answer as text.
func isPolicyApplied(err error) (applied bool, answer string) {
	switch {
	case err == nil:
		return false, "the API server does not apply them yet"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), refusedLabel):
		return true, ""
	default:
		return false, err.Error()
	}
}

// mutatedResources returns the resources that MutatingAdmissionPolicies among objects match,
// sorted, without their subresources.
func mutatedResources(objects []*unstructured.Unstructured) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, o := range objects {
		if o.GetKind() != "MutatingAdmissionPolicy" {
			continue
		}
		var policy admissionv1.MutatingAdmissionPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &policy); err != nil {
			continue // the API server has rejected the policy
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				name, _, _ := strings.Cut(resource, "/")
				out = append(out, schema.GroupVersionResource{Group: rule.APIGroups[0], Version: rule.APIVersions[0], Resource: name})
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// mutatedGroups returns the group versions, such as hive.openshift.io/v1, of the resources that
// MutatingAdmissionPolicies among objects match, sorted.
func mutatedGroups(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, r := range mutatedResources(objects) {
		out = append(out, r.GroupVersion().String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func resolveKinds(mapper meta.RESTMapper, resources []schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	var out []schema.GroupVersionKind
	for _, r := range resources {
		kind, err := mapper.KindFor(r)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %s: %w", r.Resource, err)
		}
		out = append(out, kind)
	}
	return out, nil
}

// createProbePolicy creates the probe policy. It replaces one that an earlier start left behind,
// because the API server learns of policies in the order of their creation.
func createProbePolicy(ctx context.Context, c client.Client, resources []schema.GroupVersionResource) error {
	if err := deleteProbePolicy(ctx, c); err != nil {
		return err
	}
	for _, o := range newProbeObjects(resources) {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("creating the admission policy %s: %w", o.GetName(), err)
		}
	}
	return nil
}

func deleteProbePolicy(ctx context.Context, c client.Client) error {
	for _, o := range newProbeObjects(nil) {
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the admission policy %s: %w", o.GetName(), err)
		}
	}
	return nil
}

// newProbeObjects returns a policy that sets refusedLabel on the probe, and its binding.
func newProbeObjects(resources []schema.GroupVersionResource) []client.Object {
	fail, never := admissionv1.Fail, admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: probePolicy}}
	policy.Spec.FailurePolicy, policy.Spec.ReinvocationPolicy = &fail, never
	policy.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "is-the-probe",
		Expression: fmt.Sprintf("request.dryRun && object.metadata.name == '%s' && '%s' in object.metadata.?labels.orValue({})", probeName, probeLabel),
	}}
	policy.Spec.Mutations = []admissionv1.Mutation{{
		PatchType: admissionv1.PatchTypeJSONPatch,
		JSONPatch: &admissionv1.JSONPatch{Expression: fmt.Sprintf(
			"[JSONPatch{op: 'replace', path: '%s', value: '%s'}]", path.Join("/metadata/labels", strings.ReplaceAll(probeLabel, "/", "~1")), refusedLabel)},
	}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{}
	for _, r := range resources {
		policy.Spec.MatchConstraints.ResourceRules = append(policy.Spec.MatchConstraints.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}},
			},
		})
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: probePolicy}}
	binding.Spec.PolicyName = probePolicy
	return []client.Object{policy, binding}
}
