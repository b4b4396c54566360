// Package expression compiles and evaluates the expressions of gates: CEL expressions about one object, with
// the libraries of Kubernetes.
package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// variable is the name of the object in an expression.
const variable = "object"

// compiler returns the environment in which expressions are compiled.
var compiler = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(variable, cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("building the environment of expressions: %w", err)
	}
	return set.StoredExpressionsEnv(), nil
})

// A Program is a compiled expression. It is safe for concurrent use.
type Program struct{ program cel.Program }

// maxCached is the maximum number of programs that CompileCached keeps: more than hubs have gates.
const maxCached = 1000

var cache = struct {
	sync.Mutex
	programs map[string]*Program
}{programs: map[string]*Program{}}

// CompileCached is Compile for an expression that is likely to be compiled again.
func CompileCached(text string) (*Program, error) {
	cache.Lock()
	defer cache.Unlock()
	if p, found := cache.programs[text]; found {
		return p, nil
	}
	p, err := Compile(text)
	if err != nil {
		return nil, err
	}
	if len(cache.programs) >= maxCached {
		clear(cache.programs)
	}
	cache.programs[text] = p
	return p, nil
}

// Compile compiles an expression. The error is one line for its author.
func Compile(text string) (*Program, error) {
	env, err := compiler()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		first, _, _ := strings.Cut(issues.Errors()[0].Message, "\n")
		return nil, errors.New(first)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it returns %s: write an expression that is true or false", t)
	}
	p, err := env.Program(ast, cel.CostLimit(apiservercel.PerCallLimit), cel.InterruptCheckFrequency(apiservercel.CheckFrequency))
	if err != nil {
		return nil, fmt.Errorf("compiling the expression: %w", err)
	}
	return &Program{p}, nil
}

// errNotEvaluated is why an expression has no value. It does not quote the object, which may be a Secret.
var errNotEvaluated = errors.New("the expression cannot be evaluated: a field that it uses is missing or has another type")

// Eval reports whether the expression is true of an object. An error does not contain values of the object.
func (p *Program) Eval(ctx context.Context, object map[string]any) (bool, error) {
	out, _, err := p.program.ContextEval(ctx, map[string]any{variable: object})
	if err != nil {
		return false, errNotEvaluated
	}
	value, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the expression returns no boolean: write one that is true or false")
	}
	return value, nil
}
