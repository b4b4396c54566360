package controlplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedAdmission lets custom resources begin without managedFields where which accepts
// them. The API server keeps no account of the owners of such an object's fields
// until it is first applied server-side, as if it were from before there was one
// (structured-merge-diff's "before-first-apply"). For an object that only
// controllers write, the account is as big as the object, is worked out anew at
// every write, and is read by nobody.
type untrackedAdmission struct {
	admission.Interface
	isUntracked func(*unstructured.Unstructured) bool
}

var (
	_ admission.MutationInterface   = untrackedAdmission{}
	_ admission.ValidationInterface = untrackedAdmission{}
)

// Handles is asked before the other two.
func (u untrackedAdmission) Handles(op admission.Operation) bool {
	return op == admission.Create || u.Interface.Handles(op)
}

// Admit takes the account away after everybody else has changed the object.
func (u untrackedAdmission) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := u.Interface.(admission.MutationInterface); ok && u.Interface.Handles(a.GetOperation()) {
		if err := next.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	obj, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok || a.GetOperation() != admission.Create || a.GetSubresource() != "" || !u.isUntracked(obj) {
		return nil
	}
	for _, f := range obj.GetManagedFields() {
		if f.Operation == metav1.ManagedFieldsOperationApply {
			return nil
		}
	}
	obj.SetManagedFields(nil)
	return nil
}

// Validate is that of those it stands before.
func (u untrackedAdmission) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := u.Interface.(admission.ValidationInterface); ok && u.Interface.Handles(a.GetOperation()) {
		return next.Validate(ctx, a, o)
	}
	return nil
}
