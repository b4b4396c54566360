// Package kstatustest judges objects in tests with the library that tools use to wait for them.
package kstatustest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// ComputeStatus returns the library's status of an object, with the reason of the condition that
// determines it: "InProgress Installing". A condition without a message fails the test.
func ComputeStatus(t *testing.T, obj any) string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	res, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.Status)
	for _, c := range res.Conditions {
		if c.Message == "" {
			t.Errorf("condition %s with reason %s has no message", c.Type, c.Reason)
		}
		out += " " + c.Reason
	}
	return out
}

// ExpectStatus fails the test unless ComputeStatus returns want.
func ExpectStatus(t *testing.T, obj any, want string) {
	t.Helper()
	if got := ComputeStatus(t, obj); got != want {
		raw, _ := json.MarshalIndent(obj, "", " ") // for people only
		t.Errorf("kstatus says %q, want %q, of\n%s", got, want, raw)
	}
}
