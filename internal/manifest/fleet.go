package manifest

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crd"
)

// Fleet contains the objects of documents about a fleet.
type Fleet struct {
	Regions   map[types.NamespacedName]*v1alpha1.FleetRegion
	Types     map[types.NamespacedName]*v1alpha1.InstanceType
	Planes    map[types.NamespacedName]*v1alpha1.DataPlane
	Instances map[types.NamespacedName]*v1alpha1.ServiceInstance
	Pools     map[types.NamespacedName]*hivev1.ClusterPool
	// Warnings and Notes have the same meaning as in a Set.
	Warnings []Warning
	Notes    []string
}

// fleetKinds are the kinds that decisions about a fleet depend on.
var fleetKinds = map[string]kind{
	"InstanceType":    {version: v1alpha1.GroupVersion.String()},
	"FleetRegion":     {version: v1alpha1.GroupVersion.String(), namespaced: true},
	"DataPlane":       {version: v1alpha1.GroupVersion.String(), namespaced: true},
	"ServiceInstance": {version: v1alpha1.GroupVersion.String(), namespaced: true},
	"ClusterPool":     {version: hivev1.GroupVersion.String(), namespaced: true},
}

// LoadFleet does what Load does, for the kinds of a fleet.
func LoadFleet(ctx context.Context, docs []Document, d Defaults) (*Fleet, error) {
	l := &loader{Defaults: d, kinds: fleetKinds, schemas: map[string]*crd.Schema{}, positions: map[string]int{}, skipped: map[string]int{}}
	var errs []error
	for _, doc := range docs {
		errs = append(errs, l.addDocument(doc))
	}
	f := &Fleet{
		Regions:   map[types.NamespacedName]*v1alpha1.FleetRegion{},
		Types:     map[types.NamespacedName]*v1alpha1.InstanceType{},
		Planes:    map[types.NamespacedName]*v1alpha1.DataPlane{},
		Instances: map[types.NamespacedName]*v1alpha1.ServiceInstance{},
		Pools:     map[types.NamespacedName]*hivev1.ClusterPool{},
	}
	for _, o := range l.objects {
		if err := l.addObjectToFleet(ctx, f, o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", o.Place, o, err))
		}
	}
	f.Notes = append(f.Notes, l.replaced...)
	if len(l.skipped) > 0 {
		f.Notes = append(f.Notes, "left out, since no decision depends on it: "+l.formatSkippedKinds())
	}
	return f, errors.Join(errs...)
}

// addObjectToFleet decodes one object into the fleet.
func (l *loader) addObjectToFleet(ctx context.Context, f *Fleet, o object) error {
	content, err := o.DecodeObject()
	if err != nil {
		return err
	}
	v, err := l.admitObject(ctx, o.kind, content)
	if err != nil {
		return err
	}
	switch o.kind {
	case "FleetRegion":
		err = addDecodedObject(f.Regions, o.key, content, l.Created, decodeStrict[v1alpha1.FleetRegion])
	case "InstanceType":
		err = addDecodedObject(f.Types, o.key, content, l.Created, decodeStrict[v1alpha1.InstanceType])
	case "DataPlane":
		err = addDecodedObject(f.Planes, o.key, content, l.Created, decodeStrict[v1alpha1.DataPlane])
	case "ServiceInstance":
		err = addDecodedObject(f.Instances, o.key, content, l.Created, decodeStrict[v1alpha1.ServiceInstance])
	default:
		err = addDecodedObject(f.Pools, o.key, content, l.Created, decodeStrict[hivev1.ClusterPool])
	}
	switch {
	case err != nil && len(v.Faults) > 0:
		return v.Faults.ToAggregate() // they explain better what cannot be decoded
	case err != nil:
		return err
	}
	f.Warnings = append(f.Warnings, o.listWarnings(v)...)
	return nil
}
