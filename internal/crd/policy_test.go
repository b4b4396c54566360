package crd

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

const denied = "refused: "

// policy is an admission policy and the action on violations.
type policy struct {
	admissionv1.ValidatingAdmissionPolicy
	action string
}

// policiesOf returns the policies that apply to creating a kind in a namespace without labels of
// its own.
func policiesOf(t *testing.T, kind string) []policy {
	t.Helper()
	if read[kind] == nil {
		read[kind] = readPolicies(t, kind)
	}
	return read[kind]
}

var read = map[string][]policy{}

func readPolicies(t *testing.T, kind string) []policy {
	t.Helper()
	files, err := fs.Glob(config.Manifests, "admission/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []policy
	actions := map[string]string{}
	for _, name := range files {
		raw, err := config.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			var p policy
			if err := yaml.Unmarshal([]byte(doc), &p.ValidatingAdmissionPolicy); err != nil {
				t.Fatal(err)
			}
			switch p.Kind {
			case "ValidatingAdmissionPolicyBinding":
				var b admissionv1.ValidatingAdmissionPolicyBinding
				if err := yaml.Unmarshal([]byte(doc), &b); err != nil {
					t.Fatal(err)
				}
				actions[b.Spec.PolicyName] = map[string]string{"Warn": "warning: ", "Deny": denied}[string(b.Spec.ValidationActions[0])]
			case "ValidatingAdmissionPolicy":
				rule := p.Spec.MatchConstraints.ResourceRules[0]
				if slices.Contains(rule.Resources, strings.ToLower(kind)+"s") && slices.Contains(rule.Operations, admissionv1.Create) && p.anywhere(t) {
					out = append(out, p)
				}
			}
		}
	}
	for i := range out {
		if out[i].action = actions[out[i].Name]; out[i].action == "" {
			t.Fatalf("policy %s has no binding", out[i].Name)
		}
	}
	return out
}

// anywhere reports whether the policy also applies in a namespace without labels of its own.
func (p policy) anywhere(t *testing.T) bool {
	t.Helper()
	if p.Spec.MatchConstraints.NamespaceSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.MatchConstraints.NamespaceSelector)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return selector.Matches(labels.Set{corev1.LabelMetadataName: "somewhere"}) // which every namespace has
}

// authorizeSources allows to use recipes and to read ClusterClasses, and nothing else.
func authorizeSources(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains([]string{"use recipes.hotspare.io", "get clusterclasses.cluster.x-k8s.io"}, a.GetVerb()+" "+a.GetResource()+"."+a.GetAPIGroup()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// authorize allows rights that are written as "create clusterclaims.hive.openshift.io somewhere/name", with * for what has
// no name.
func authorize(rights ...string) authorizer.AuthorizerFunc {
	return func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		resource := strings.TrimSuffix(a.GetResource()+"."+a.GetAPIGroup(), ".")
		if slices.Contains(rights, a.GetVerb()+" "+resource+" "+a.GetNamespace()+"/"+cmp.Or(a.GetName(), "*")) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
}

// judge returns which rules of the policy the object violates when it replaces an old one; old is
// nil on create.
func (p policy) judge(t *testing.T, object, old map[string]any) []string {
	t.Helper()
	return p.judgeAs(t, authorizeSources, object, old)
}

// judgeAs judges as judge does what a user with other rights writes.
func (p policy) judgeAs(t *testing.T, rights authorizer.AuthorizerFunc, object, old map[string]any) []string {
	t.Helper()
	variables := map[string]any{}
	request := map[string]any{"userInfo": map[string]any{"username": "somebody"}, "namespace": "somewhere", "operation": "CREATE"}
	given := map[string]any{
		"object": object, "oldObject": nil, "variables": variables, "request": request,
		"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: "somebody"}, rights),
	}
	if old != nil {
		given["oldObject"], request["operation"] = old, "UPDATE"
	}
	for _, c := range p.Spec.MatchConditions {
		applies, err := evaluate(t, c.Expression, given)
		if err != nil {
			t.Fatalf("%s: %s: %v", p.Name, c.Name, err)
		}
		if applies != types.True {
			return nil
		}
	}
	for _, v := range p.Spec.Variables {
		value, err := evaluate(t, v.Expression, given)
		if err != nil {
			t.Fatalf("%s: %s: %v\n%v", p.Name, v.Name, err, object)
		}
		variables[v.Name] = value
	}
	var out []string
	for _, v := range p.Spec.Validations {
		switch holds, err := evaluate(t, v.Expression, given); {
		case err != nil:
			t.Errorf("%s: %s: %v", p.Name, v.Expression, err)
		case holds == types.True:
		case v.MessageExpression == "":
			out = append(out, p.said(v.Message))
		default:
			words, err := evaluate(t, v.MessageExpression, given)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Name, v.MessageExpression, err)
				continue
			}
			out = append(out, p.said(words.Value().(string)))
		}
	}
	return out
}

// said is a message with what it means; that of a refusal is the same for all.
func (p policy) said(words string) string {
	if p.action == denied {
		return words
	}
	return p.action + words
}

func evaluate(t *testing.T, expression string, given map[string]any) (ref.Val, error) {
	t.Helper()
	program := programs[expression]
	if program == nil {
		env, err := expressions()
		if err != nil {
			t.Fatal(err)
		}
		tree, faults := env.Compile(expression)
		if faults.Err() != nil {
			t.Fatal(faults.Err())
		}
		if program, err = env.Program(tree); err != nil {
			t.Fatal(err)
		}
		programs[expression] = program
	}
	value, _, err := program.Eval(given)
	return value, err
}

var programs = map[string]cel.Program{}

// expressions is where policies are evaluated.
var expressions = sync.OnceValues(func() (*cel.Env, error) {
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
			cel.Variable("variables", cel.DynType), cel.Variable("request", cel.DynType),
			cel.Variable("authorizer", library.AuthorizerType),
		},
	})
	if err != nil {
		return nil, err
	}
	return base.NewExpressionsEnv(), nil
})
