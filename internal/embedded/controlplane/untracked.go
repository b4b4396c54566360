package controlplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedAdmission removes managedFields from new custom resources that isUntracked accepts. The
// API server does not record field ownership for such an object until it is first applied
// server-side, as if the object were older than field ownership (structured-merge-diff's
// "before-first-apply"). For an object that only controllers write, that record is as big as the
// object, is recomputed at every write, and is never read.
type untrackedAdmission struct {
	admission.Interface
	isUntracked func(*unstructured.Unstructured) bool
}

var (
	_ admission.MutationInterface   = untrackedAdmission{}
	_ admission.ValidationInterface = untrackedAdmission{}
)

// Handles is called before Admit and Validate.
func (u untrackedAdmission) Handles(op admission.Operation) bool {
	return op == admission.Create || u.Interface.Handles(op)
}

// Admit removes managedFields after all other plugins have changed the object.
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

// Validate calls Validate of the wrapped admission chain.
func (u untrackedAdmission) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := u.Interface.(admission.ValidationInterface); ok && u.Interface.Handles(a.GetOperation()) {
		return next.Validate(ctx, a, o)
	}
	return nil
}
