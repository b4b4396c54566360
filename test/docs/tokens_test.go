package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// validationRule finds the rule in an AuthenticationConfiguration that says whose tokens a hub accepts.
var validationRule = regexp.MustCompile(`(?m)^ +- expression: (claims\..*)$`)

// The name of an organization can be registered by somebody else, and its ID cannot.
func TestTokensAreAcceptedByIDsThatNobodyElseGets(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs", "ci", "tokens.md"))
	if err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("claims", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	rules := validationRule.FindAllStringSubmatch(string(page), -1)
	if len(rules) != 2 {
		t.Fatalf("%d rules were found, want one of GitHub and one of GitLab", len(rules))
	}
	for i, own := range []map[string]string{
		{"repository_owner": "acme", "repository_owner_id": "12345678"},
		{"namespace_path": "acme", "namespace_id": "87654321"},
	} {
		tree, faults := env.Compile(rules[i][1])
		if faults.Err() != nil {
			t.Fatal(faults.Err())
		}
		program, err := env.Program(tree)
		if err != nil {
			t.Fatal(err)
		}
		accepts := func(claims map[string]string) bool {
			t.Helper()
			got, _, err := program.Eval(map[string]any{"claims": claims})
			return err == nil && got == types.True
		}
		if !accepts(own) {
			t.Errorf("%s: the organization's own token is refused", rules[i][1])
		}
		for claim := range own {
			other := maps.Clone(own)
			if other[claim] = "1"; accepts(other) {
				t.Errorf("%s: a token with another %s is accepted", rules[i][1], claim)
			}
			if delete(other, claim); accepts(other) {
				t.Errorf("%s: a token without %s is accepted", rules[i][1], claim)
			}
		}
	}
}
