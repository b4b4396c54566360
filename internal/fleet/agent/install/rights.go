package install

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent"
	"hotspare.io/hotspare/internal/fleet/agent/plan"
)

// HubAccountName returns the name of the agent's ServiceAccount, Role and RoleBinding on the hub.
func HubAccountName(dataPlane string) string { return dataPlane + "-agent" }

// TokenName returns the name of the Secret into which the hub puts the agent's token.
func TokenName(dataPlane string) string { return dataPlane + "-agent-token" }

// HubObjects returns the objects that give the agent of a data plane its identity and its rights on
// the hub: it may read the one DataPlaneAgent with its name, and write its status. The token is
// valid until the Secret or the ServiceAccount is deleted; deleting only the Secret results in a
// new token.
func HubObjects(namespace, dataPlane string, owners ...metav1.OwnerReference) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}
	}
	name := HubAccountName(dataPlane)
	group := []string{v1alpha1.GroupVersion.Group}
	token := meta(TokenName(dataPlane))
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: name}
	return []client.Object{
		&corev1.ServiceAccount{TypeMeta: newTypeMeta("v1", "ServiceAccount"), ObjectMeta: meta(name), AutomountServiceAccountToken: ptr.To(false)},
		&corev1.Secret{TypeMeta: newTypeMeta("v1", "Secret"), ObjectMeta: token, Type: corev1.SecretTypeServiceAccountToken},
		&rbacv1.Role{TypeMeta: newTypeMeta(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: meta(name), Rules: []rbacv1.PolicyRule{
			{APIGroups: group, Resources: []string{"dataplaneagents"}, ResourceNames: []string{dataPlane}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: group, Resources: []string{"dataplaneagents/status"}, ResourceNames: []string{dataPlane}, Verbs: []string{"get", "patch", "update"}},
		}},
		&rbacv1.RoleBinding{
			TypeMeta: newTypeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: meta(name),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		},
	}
}

func placeholderPriorityClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:      newTypeMeta(schedulingv1.SchemeGroupVersion.String(), "PriorityClass"),
		ObjectMeta:    metav1.ObjectMeta{Name: plan.PriorityClass},
		Value:         plan.PriorityClassValue,
		GlobalDefault: false,
		Description:   "Pods that reserve nodes for instances. Any other pod preempts them.",
	}
}

// accessObjects returns the agent's rights on the data plane: roles grant the verbs, and a policy
// limits them to namespaces that the agent has created, which a role cannot express.
func accessObjects(a Agent) []client.Object {
	meta := metav1.ObjectMeta{Name: Name}
	read := []string{"get", "list", "watch"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: append([]string{"create", "delete"}, read...)},
		{APIGroups: []string{plan.ManagedKafka.Group}, Resources: []string{"managedkafkas"}, Verbs: append([]string{"create", "patch", "delete"}, read...)},
		{APIGroups: []string{plan.ManagedKafka.Group}, Resources: []string{"managedkafkaagents"}, Verbs: read},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: append([]string{"create", "patch", "delete"}, read...)},
	}
	if a.Operator == agent.StandIn {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{plan.ManagedKafka.Group}, Resources: []string{"managedkafkas/status"}, Verbs: []string{"patch"}})
	}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: newTypeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"), ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: newTypeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: Name}},
		},
		admissionPolicy(meta),
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: newTypeMeta(admissionv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicyBinding"), ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		},
	}
}

// admissionPolicy limits the agent to namespaces with its label, and to the names of instance
// namespaces.
func admissionPolicy(meta metav1.ObjectMeta) *admissionv1.ValidatingAdmissionPolicy {
	marked := fmt.Sprintf("has(%%[1]s.metadata.labels) && '%[1]s' in %%[1]s.metadata.labels && %%[1]s.metadata.labels['%[1]s'] == '%[2]s'", plan.LabelManagedBy, plan.ManagedBy)
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta: newTypeMeta(admissionv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicy"), ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups: []string{"", "apps", plan.ManagedKafka.Group}, APIVersions: []string{"*"},
						Resources: []string{"namespaces", "deployments", "managedkafkas", "managedkafkas/status"},
					},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "agent", Expression: fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", Namespace, Name),
			}},
			Validations: []admissionv1.Validation{
				{
					Expression: "request.resource.resource == 'namespaces' || (" + fmt.Sprintf(marked, "namespaceObject") + ")",
					Message:    "the agent may write only in namespaces that it has created",
				},
				{
					Expression: "request.resource.resource != 'namespaces' || request.operation != 'CREATE' || (" + fmt.Sprintf(marked, "object") +
						" && (object.metadata.name.startsWith('kafka-') || object.metadata.name.startsWith('reserved-kafka-')))",
					Message: "the agent may create only namespaces of instances: kafka-… and reserved-kafka-…, with its label",
				},
				{
					Expression: "request.resource.resource != 'namespaces' || request.operation == 'CREATE' || (" + fmt.Sprintf(marked, "oldObject") + ")",
					Message:    "the agent may delete only namespaces that it has created",
				},
			},
		},
	}
}
