package expression_test

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/gate/expression"
)

func TestExpressions(t *testing.T) {
	object := map[string]any{
		"spec":   map[string]any{"replicas": int64(2), "token": "s3cr3t"},
		"status": map[string]any{"readyReplicas": int64(2), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}
	for text, want := range map[string]string{
		"object.status.readyReplicas >= 2":                                            "true",
		"object.status.readyReplicas == object.spec.replicas":                         "true",
		"object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')": "true",
		"object.status.readyReplicas > 2":                                             "false",
		"has(object.status.phase)":                                                    "false",
		"object.?status.?phase.orValue('') == 'Active'":                               "false",
		"quantity('1Gi').isGreaterThan(quantity('1Mi'))":                              "true",
		"object.status.phase == 'Active'":                                             "a field that it uses is missing",
		"object.spec.token > 3":                                                       "a field that it uses is missing or has another type",
		"object.spec.token":                                                           "returns no boolean",
		"1 + 1":                                                                       "it returns int",
		"object.status.":                                                              "Syntax error",
		"subject.status":                                                              "undeclared reference to 'subject'",
		"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f > 0))))))": "cannot be evaluated",
	} {
		t.Run(text, func(t *testing.T) {
			got := "true"
			p, err := expression.CompileCached(text)
			if err == nil {
				var ok bool
				if ok, err = p.Eval(t.Context(), object); !ok {
					got = "false"
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if strings.Contains(got, "s3cr3t") || strings.Contains(got, "\n") {
				t.Errorf("the message %q quotes the object, or has several lines", got)
			}
		})
	}
}
