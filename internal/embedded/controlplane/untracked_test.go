package controlplane

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// chain is an admission chain that handles one operation and counts its calls.
type chain struct {
	operation admission.Operation
	calls     int
	err       error
}

func (c *chain) Handles(op admission.Operation) bool { return op == c.operation }

func (c *chain) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	c.calls++
	return c.err
}

func request(op admission.Operation, subresource string, manager metav1.ManagedFieldsOperationType) (admission.Attributes, *unstructured.Unstructured) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Record", "metadata": map[string]any{"name": "r"}}}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: manager}})
	return admission.NewAttributesRecord(obj, nil, obj.GroupVersionKind(), "", "r", schema.GroupVersionResource{Resource: "records"}, subresource, op, nil, false, &user.DefaultInfo{}), obj
}

func TestManagedFieldsAreRemovedFromNewRecordsOnly(t *testing.T) {
	isRecord := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Record" }
	for name, c := range map[string]struct {
		op          admission.Operation
		subresource string
		manager     metav1.ManagedFieldsOperationType
		accepts     func(*unstructured.Unstructured) bool
		wantRemoved bool
	}{
		"a new record":                      {admission.Create, "", metav1.ManagedFieldsOperationUpdate, isRecord, true},
		"a new object of another kind":      {admission.Create, "", metav1.ManagedFieldsOperationUpdate, func(*unstructured.Unstructured) bool { return false }, false},
		"a record that was applied":         {admission.Create, "", metav1.ManagedFieldsOperationApply, isRecord, false},
		"an update of a record":             {admission.Update, "", metav1.ManagedFieldsOperationUpdate, isRecord, false},
		"a subresource of a record, as new": {admission.Create, "eviction", metav1.ManagedFieldsOperationUpdate, isRecord, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := &chain{operation: c.op}
			u := untrackedAdmission{next, c.accepts}
			attributes, obj := request(c.op, c.subresource, c.manager)
			if err := u.Admit(t.Context(), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if removed := len(obj.GetManagedFields()) == 0; removed != c.wantRemoved {
				t.Errorf("removed: %t, want %t", removed, c.wantRemoved)
			}
			if next.calls != 1 {
				t.Errorf("the chain was called %d times", next.calls)
			}
		})
	}
}

func TestTheChainDecidesFirst(t *testing.T) {
	refused := errors.New("refused")
	next := &chain{operation: admission.Create, err: refused}
	attributes, obj := request(admission.Create, "", metav1.ManagedFieldsOperationUpdate)
	u := untrackedAdmission{next, func(*unstructured.Unstructured) bool { return true }}
	if err := u.Admit(t.Context(), attributes, nil); !errors.Is(err, refused) || len(obj.GetManagedFields()) == 0 {
		t.Errorf("got %v, managed fields %v", err, obj.GetManagedFields())
	}
	// A chain that handles no creations is not asked about one, and the fields are removed all the same.
	other := &chain{operation: admission.Delete}
	u = untrackedAdmission{other, u.isUntracked}
	if !u.Handles(admission.Create) || u.Handles(admission.Connect) || !u.Handles(admission.Delete) {
		t.Error("it must handle creations, and what the chain handles")
	}
	if err := u.Admit(t.Context(), attributes, nil); err != nil || other.calls != 0 || len(obj.GetManagedFields()) != 0 {
		t.Errorf("got %v after %d calls, managed fields %v", err, other.calls, obj.GetManagedFields())
	}
}
