// Package crd processes a manifest as the API server does before it stores it: it drops unknown
// fields, sets defaults, and validates. It uses the API server's own code and the CRDs of package
// config, so that it finds the same errors with the same messages.
//
// Rules that compare an object with its previous version are not applied. The package applies only
// those admission policies that replace a schema: it reports what they deny, too.
package crd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apischema "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// ErrUnknownKind is the error for a kind that is not ours.
var ErrUnknownKind = errors.New("no such kind")

// groups are the API groups of our kinds. Kind names are unique across them.
var groups = []string{"hive.openshift.io", "hotspare.io"}

// Schema is the schema of a kind.
type Schema struct {
	namespaced     bool
	shape          *schema.Structural
	valueValidator apischema.SchemaValidator
	rules          *cel.Validator
	policy         func(object, spec map[string]any) field.ErrorList
}

// policies maps a kind to a function that finds what its admission policies deny because the schema
// cannot express it.
var policies = map[string]func(object, spec map[string]any) field.ErrorList{
	"ClusterPool":                    findPoolViolations,
	"ClusterDeploymentCustomization": func(_, spec map[string]any) field.ErrorList { return validatePatchValues(spec) },
}

// LoadSchema returns the schema of one of our kinds, such as "ClusterPool".
func LoadSchema(kind string) (*Schema, error) {
	var raw []byte
	err := fs.ErrNotExist
	plural, _ := meta.UnsafeGuessKindToResource(runtimeschema.GroupVersionKind{Kind: kind})
	for _, group := range groups {
		if errors.Is(err, fs.ErrNotExist) {
			raw, err = config.Manifests.ReadFile("crd/" + group + "_" + plural.Resource + ".yaml")
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", kind, ErrUnknownKind)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", kind, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", kind, err)
	}
	s, err := compileSchema(&crd)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema of %s: %w", kind, err)
	}
	s.policy = policies[kind]
	return s, nil
}

func compileSchema(crd *apiextensionsv1.CustomResourceDefinition) (*Schema, error) {
	var internal apiextensions.CustomResourceValidation
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		crd.Spec.Versions[0].Schema, &internal, nil)
	if err != nil {
		return nil, err
	}
	s := &Schema{namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
	if s.shape, err = schema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	s.shape = s.shape.DeepCopy() // it shares defaults with the structure that it was built from
	if err := defaulting.PruneDefaults(s.shape); err != nil {
		return nil, err
	}
	if s.valueValidator, _, err = apischema.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	s.rules = cel.NewValidator(s.shape, true, celconfig.PerCallLimit)
	return s, nil
}

// Findings are the findings about an object.
type Findings struct {
	// Unknown lists the paths of unknown fields, sorted.
	Unknown []string
	// Faults are the reasons why the API server would reject the object.
	Faults field.ErrorList
}

// Admit drops unknown fields from the object, sets defaults, and returns what it found. An error
// means that the metadata cannot be read at all.
func (s *Schema) Admit(ctx context.Context, object map[string]any) (Findings, error) {
	var v Findings
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return v, fmt.Errorf("reading metadata: %w", err)
	}
	pruned := pruning.PruneWithOptions(object, s.shape, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	v.Unknown = slices.Sorted(slices.Values(slices.Concat(unknown, pruned)))
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.shape)
	if found {
		if !s.namespaced {
			meta.Namespace = "" // the API server drops it, too
		}
		if err := objectmeta.SetObjectMeta(object, meta); err != nil {
			return v, fmt.Errorf("reading metadata: %w", err)
		}
	}
	defaulting.Default(object, s.shape)
	v.Faults = s.validateObject(ctx, object)
	if spec, ok := object["spec"].(map[string]any); ok && s.policy != nil {
		v.Faults = append(v.Faults, policyOnlyFaults(v.Faults, s.policy(object, spec))...)
	}
	return v, nil
}

// policyOnlyFaults returns the faults that a policy finds in fields without schema faults: the API
// server evaluates policies only after the schema is satisfied.
func policyOnlyFaults(schema, policy field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(policy, func(p *field.Error) bool {
		return slices.ContainsFunc(schema, func(s *field.Error) bool { return s.Field == p.Field })
	})
}

func (s *Schema) validateObject(ctx context.Context, object map[string]any) field.ErrorList {
	faults := validation.ValidateObjectMetaAccessor(
		&unstructured.Unstructured{Object: object}, s.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if !certainlyConforms(object, s.shape) {
		faults = append(faults, apischema.ValidateCustomResource(nil, object, s.valueValidator)...)
	}
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, s.shape, object)...)
	if s.rules == nil || preventsRules(faults) {
		return faults
	}
	broken, _ := s.rules.Validate(ctx, nil, s.shape, object, nil, celconfig.RuntimeCELCostBudget)
	return append(faults, broken...)
}

// preventsRules reports whether the object has another structure than the rules expect.
func preventsRules(faults field.ErrorList) bool {
	for _, f := range faults {
		switch f.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
