package crd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

const denied = "refused: "

// policy is an admission policy and what is done to what breaks it.
type policy struct {
	admissionv1.ValidatingAdmissionPolicy
	action string
}

// policiesOf are those that concern a kind's creation.
func policiesOf(t *testing.T, kind string) []policy {
	t.Helper()
	raw, err := config.Manifests.ReadFile("admission/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []policy
	actions := map[string]string{}
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		var p policy
		if err := yaml.Unmarshal([]byte(doc), &p.ValidatingAdmissionPolicy); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "ValidatingAdmissionPolicyBinding" {
			var b admissionv1.ValidatingAdmissionPolicyBinding
			if err := yaml.Unmarshal([]byte(doc), &b); err != nil {
				t.Fatal(err)
			}
			actions[b.Spec.PolicyName] = map[string]string{"Warn": "warning: ", "Deny": denied}[string(b.Spec.ValidationActions[0])]
			continue
		}
		if p.Kind == "" {
			continue
		}
		rule := p.Spec.MatchConstraints.ResourceRules[0]
		if slices.Contains(rule.Resources, strings.ToLower(kind)+"s") && slices.Contains(rule.Operations, admissionv1.Create) {
			out = append(out, p)
		}
	}
	for i := range out {
		if out[i].action = actions[out[i].Name]; out[i].action == "" {
			t.Fatalf("policy %s has no binding", out[i].Name)
		}
	}
	return out
}

// judge says what of the policy the object breaks when it is created.
func (p policy) judge(t *testing.T, object map[string]any) []string {
	t.Helper()
	given := map[string]any{"object": object, "oldObject": nil, "variables": map[string]any{}}
	var out []string
	for _, v := range p.Spec.Variables {
		value, err := evaluate(t, v.Expression, given)
		if err != nil {
			t.Fatal(err)
		}
		given["variables"].(map[string]any)[v.Name] = value
	}
	for _, v := range p.Spec.Validations {
		switch holds, err := evaluate(t, v.Expression, given); {
		case err != nil:
			t.Errorf("%s: %s: %v", p.Name, v.Expression, err)
		case holds == true:
		case v.MessageExpression == "":
			out = append(out, p.said(v.Message))
		default:
			words, err := evaluate(t, v.MessageExpression, given)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Name, v.MessageExpression, err)
				continue
			}
			out = append(out, p.said(words.(string)))
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

func evaluate(t *testing.T, expression string, given map[string]any) (any, error) {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("variables", cel.DynType)},
	})
	if err != nil {
		t.Fatal(err)
	}
	env := base.NewExpressionsEnv()
	tree, faults := env.Compile(expression)
	if faults.Err() != nil {
		t.Fatal(faults.Err())
	}
	program, err := env.Program(tree)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(given)
	if err != nil {
		return nil, err
	}
	return value.Value(), nil
}
