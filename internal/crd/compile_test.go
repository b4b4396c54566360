package crd

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// expression is one of a policy, as the API server's compiler takes it. Only a variable has a name.
type expression struct {
	name, text string
	returns    *cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.returns} }

// The API server rejects a policy with an expression that does not compile. judge is more lenient: to it, every variable
// is of any type, and messages may check rights.
func TestTheAPIServerCompilesEveryPolicy(t *testing.T) {
	names, err := fs.Glob(config.Manifests, "admission/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("found no policies: %v", err)
	}
	for _, name := range names {
		raw, err := config.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			var p admissionv1.ValidatingAdmissionPolicy
			if err := yaml.Unmarshal([]byte(doc), &p); err != nil {
				t.Fatal(err)
			}
			if p.Kind == "ValidatingAdmissionPolicy" {
				t.Run(p.Name, func(t *testing.T) { compilePolicy(t, p) })
			}
		}
	}
}

func compilePolicy(t *testing.T, p admissionv1.ValidatingAdmissionPolicy) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	rules := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	messages := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
	check := func(e expression, found plugincel.CompilationResult) {
		t.Helper()
		if found.Error != nil {
			t.Errorf("%s %s: %v", e.name, e.text, found.Error)
		}
	}
	for _, c := range p.Spec.MatchConditions { // before the variables: a condition must not depend on them
		e := expression{text: c.Expression, returns: cel.BoolType}
		check(e, compiler.CompileCELExpression(e, rules, environment.NewExpressions))
	}
	for _, v := range p.Spec.Variables {
		if escaped, valid := apiservercel.Escape(v.Name); !valid || escaped != v.Name { // such as namespace, which is reserved
			t.Errorf("variable %s: the name is no identifier of CEL", v.Name)
		}
		e := expression{v.Name, v.Expression, cel.AnyType}
		check(e, compiler.CompileAndStoreVariable(e, rules, environment.NewExpressions))
	}
	for _, v := range p.Spec.Validations {
		e := expression{text: v.Expression, returns: cel.BoolType}
		check(e, compiler.CompileCELExpression(e, rules, environment.NewExpressions))
		if v.MessageExpression != "" {
			e := expression{text: v.MessageExpression, returns: cel.StringType}
			check(e, compiler.CompileCELExpression(e, messages, environment.NewExpressions))
		}
	}
}
