package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	strict "sigs.k8s.io/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// specField is the field of a customization that contains patches for a spec.
const specField = "clusterDeploymentSpecPatches"

// ownedFields lists the fields that cannot be patched, each with the alternative to patching it: those that hotspare sets,
// and those that decide which programs run with the credentials of the pool, and which Secrets they get. A user who may
// write customizations need not be allowed to read these Secrets. The first field that has changed is reported.
var ownedFields = []struct {
	path    pointer
	instead string
}{
	{pointer{"clusterName"}, "patch metadata.name in installConfigPatches; the cluster's name follows it"},
	{pointer{"baseDomain"}, "patch baseDomain in installConfigPatches; the cluster's baseDomain follows it"},
	{pointer{"platform"}, "patch platform in installConfigPatches, or set it in the pool"},
	{pointer{"clusterPoolRef"}, "remove the patch"},
	{pointer{"installed"}, "remove the patch"},
	{pointer{"clusterMetadata"}, "remove the patch"},
	{pointer{"powerState"}, "remove the patch; runningCount of the pool sets how many clusters run"},
	{pointer{"pullSecretRef"}, "set it in the pool"},
	{pointer{"clusterInstallRef"}, "remove the patch"},
	{pointer{"boundServiceAccountSigningKeySecretRef"}, "remove the patch; the field has no effect"},
	{pointer{"provisioning", "installConfigSecretRef"}, "use installConfigPatches"},
	{pointer{"provisioning", "imageSetRef"}, "set it in the pool"},
	{pointer{"provisioning", "releaseImage"}, "set imageSetRef in the pool"},
	{pointer{"provisioning", "installerImageOverride"}, "remove the patch; imageSetRef of the pool selects the installer"},
	{pointer{"provisioning", "installerEnv"}, "set it in the pool"},
	{pointer{"provisioning", "manifestsConfigMapRef"}, "use installerManifestPatches"},
	{pointer{"provisioning", "manifestsSecretRef"}, "use installerManifestPatches"},
	{pointer{"provisioning", "sshPrivateKeySecretRef"}, "remove the patch; to set sshKey, use installConfigPatches"},
	{pointer{"provisioning", "customizationRef"}, "set it in the pool"},
	{pointer{"provisioning"}, "remove the patch"}, // its other fields, and those of the future
}

// PatchSpec applies a customization's patches to the spec of the ClusterDeployment that a pool is
// about to create, as ApplyPatches does to its install-config; it does not modify spec. Fields that
// are not set are absent: patches must add them, not replace them.
//
// The error is fault.Denied if a patch does not apply, if the result is not a valid spec, or if a
// field of ownedFields has changed; it names the field and quotes no values.
func PatchSpec(spec hivev1.ClusterDeploymentSpec, patches []hivev1.PatchEntity) (hivev1.ClusterDeploymentSpec, error) {
	none := hivev1.ClusterDeploymentSpec{}
	before, err := specToDocument(spec)
	if err != nil {
		return none, err
	}
	p := patcher{field: specField, doc: before}
	if err := p.applyPatches(patches); err != nil {
		return none, err
	}
	out, err := documentToSpec(p.doc)
	if err != nil {
		return none, fault.NewDenied("with %s applied: %w", specField, err)
	}
	after, err := specToDocument(out)
	if err != nil {
		return none, err
	}
	for _, field := range ownedFields {
		if had, has := field.path.findValueOrNil(before), field.path.findValueOrNil(after); !equalJSON(had, has) {
			return none, fault.NewDenied("%s: %s cannot be patched: %s",
				specField, strings.Join(field.path, "."), field.instead)
		}
	}
	return out, nil
}

// findValueOrNil returns the value at p; nil if there is none.
func (p pointer) findValueOrNil(doc document) any {
	v, err := p.findValue(map[string]any(doc))
	if err != nil {
		return nil
	}
	return v
}

func specToDocument(spec hivev1.ClusterDeploymentSpec) (document, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding a cluster's spec: %w", err)
	}
	tree, err := decodeJSONValue(raw)
	if err != nil {
		return nil, fmt.Errorf("decoding a cluster's spec: %w", err)
	}
	mapping, _ := tree.(map[string]any) // a struct encodes to a mapping
	return mapping, nil
}

// documentToSpec decodes a spec as strictly as the API server does. Its errors quote no values: the
// installer's environment can contain secrets.
func documentToSpec(doc document) (hivev1.ClusterDeploymentSpec, error) {
	var spec hivev1.ClusterDeploymentSpec
	raw, err := json.Marshal(doc)
	if err != nil {
		return spec, fmt.Errorf("encoding a cluster's spec: %w", err)
	}
	unknown, err := strict.UnmarshalStrict(raw, &spec)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		kind, _, _ := strings.Cut(mismatch.Value, " ") // the rest is a number from the document
		return spec, fmt.Errorf("%s: cannot be of type %s, want %s", mismatch.Field, kind, mismatch.Type)
	case err != nil:
		return spec, errors.New("it is not the spec of a ClusterDeployment: check the types of the values")
	case len(unknown) > 0:
		return spec, fmt.Errorf("%w: correct the spelling, or remove the patch", errors.Join(unknown...))
	}
	return spec, checkSpecLimits(spec)
}

// checkSpecLimits checks the limits of the schema for fields that can be patched: a spec that the
// API server rejects would be retried forever.
func checkSpecLimits(spec hivev1.ClusterDeploymentSpec) error {
	if n := spec.InstallAttemptsLimit; n != nil && *n < 0 {
		return errors.New("installAttemptsLimit: is negative: use 0 or more")
	}
	for _, field := range []struct {
		name string
		*hivev1.Duration
	}{
		{"hibernateAfter", spec.HibernateAfter},
		{"powerstateTransitionToRunningTimeout", spec.PowerstateTransitionToRunningTimeout},
		{"powerstateTransitionToHibernatingTimeout", spec.PowerstateTransitionToHibernatingTimeout},
	} {
		if field.Duration == nil {
			continue
		}
		if _, err := field.Parse(); err != nil {
			return fmt.Errorf("%s: is not a duration of at most ten years: write hours, minutes and seconds, such as 8h or 1h30m", field.name)
		}
	}
	return nil
}
