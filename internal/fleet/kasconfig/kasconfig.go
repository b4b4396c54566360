// Package kasconfig reads the configuration files of kas-fleet-manager: instance types, providers with
// their limits, dynamic scaling and node prewarming. It translates them to InstanceTypes and
// FleetRegions.
//
// It is strict. An unknown key, a type or a size that does not exist, slack above the limit, a
// negative number, and a minimum above its maximum are errors that name file, path and value.
// (kas-fleet-manager ignored a misspelled key, treated a broken prewarming file as absent, and
// exited when the file was absent.)
package kasconfig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The names of the files in kas-fleet-manager.
const (
	TypesFile      = "kafka-instance-types-configuration.yaml"
	ProvidersFile  = "provider-configuration.yaml"
	ScalingFile    = "dynamic-scaling-configuration.yaml"
	PrewarmingFile = "node-prewarming-configuration.yaml"
)

// Names are the names of all files that Read reads.
var Names = []string{TypesFile, ProvidersFile, ScalingFile, PrewarmingFile}

// File is a configuration file.
type File struct {
	// Name is the file's name in errors.
	Name string
	Text []byte
}

// Options are the values that the files do not contain.
type Options struct {
	// Namespace is the namespace of the FleetRegions.
	Namespace string
	// Pool and MultiZonePool are the ClusterPools that data planes are claimed from; empty ones are
	// named after the region.
	Pool, MultiZonePool string
	// NodesPerUnit is the number of nodes that a streaming unit takes, by type. The defaults for
	// standard and developer are 3 and 0.1.
	NodesPerUnit map[string]string
}

// Result has the objects that the files translate to.
type Result struct {
	Types   []*v1alpha1.InstanceType
	Regions []*v1alpha1.FleetRegion
	// Notes say what was left out, and what else you must do.
	Notes []string
}

// Read reads the files; the keys are those in Names. The types file is required; without the
// providers file there are no regions. The error lists everything that is wrong.
func Read(files map[string]File, o Options) (Result, error) {
	r := &reader{Options: o, ignoredKeys: map[string]bool{}, types: map[string]*v1alpha1.InstanceType{}}
	f, ok := files[TypesFile]
	if !ok {
		return Result{}, fmt.Errorf("file %s is missing: the other files refer to its types", TypesFile)
	}
	r.readTypes(parseFile(f, &r.errs))
	if f, ok := files[ScalingFile]; ok {
		n := parseFile(f, &r.errs)
		r.scaling = &n
		r.readScaling(n)
	}
	if f, ok := files[PrewarmingFile]; ok {
		r.readPrewarming(parseFile(f, &r.errs))
	}
	if f, ok := files[ProvidersFile]; ok {
		r.readProviders(parseFile(f, &r.errs))
	}
	if len(r.errs) > 0 {
		return Result{}, errors.Join(r.errs...)
	}
	return r.buildResult(files), nil
}

type reader struct {
	Options
	errs  []error
	notes []string
	// ignoredKeys are known keys that have no meaning here.
	ignoredKeys map[string]bool
	// order has the names of the types in the order of the file.
	order   []string
	types   map[string]*v1alpha1.InstanceType
	regions []*v1alpha1.FleetRegion
	scaling *node
	// reserved are the reserved instances of each type.
	reserved                   map[string]*v1alpha1.Reserved
	scaleUpMode, scaleDownMode v1alpha1.ScalingMode
	// defaultNodePools are the node pools that belong to no type, by provider.
	defaultNodePools map[string]v1alpha1.DefaultNodePool
}

func (r *reader) recordIgnoredKeys(n node, keys ...string) {
	for _, k := range keys {
		if n.field(k).isSet() {
			r.ignoredKeys[k] = true
		}
	}
}

func (r *reader) buildResult(files map[string]File) Result {
	m := Result{Regions: r.regions, Notes: r.notes}
	for _, name := range r.order {
		m.Types = append(m.Types, r.types[name])
	}
	var left []string
	for k := range r.ignoredKeys {
		left = append(left, k)
	}
	slices.Sort(left)
	if len(left) > 0 {
		m.Notes = append(m.Notes, "ignored, because hotspare has no equivalent: "+strings.Join(left, ", "))
	}
	if _, ok := files[ScalingFile]; !ok {
		m.Notes = append(m.Notes, "without "+ScalingFile+" the types have no nodePools: add them before data planes are created")
	}
	var pools []string
	for _, fr := range r.regions {
		for _, p := range fr.Spec.ClusterSource.Claim.Pools {
			pools = append(pools, p.PoolRef.Name)
		}
	}
	slices.Sort(pools)
	if pools = slices.Compact(pools); len(pools) > 0 {
		m.Notes = append(m.Notes, "the clusters of data planes are claimed from these ClusterPools, which the files do not define: "+strings.Join(pools, ", "))
	}
	return m
}

// findType returns a type that a file refers to; nil, with an error recorded, if there is none.
func (r *reader) findType(n node, name string) *v1alpha1.InstanceType {
	it := r.types[name]
	if it == nil {
		n.addError("type %q does not exist: %s has %s", name, TypesFile, strings.Join(r.order, ", "))
	}
	return it
}

// defaultNodesPerUnit are the values that were built into the agent of kas-fleetshard.
var defaultNodesPerUnit = map[string]string{"standard": "3", "developer": "0.1"}

func (r *reader) parseNodesPerUnit(n node, name string) *resource.Quantity {
	text := cmp.Or(r.NodesPerUnit[name], defaultNodesPerUnit[name])
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		n.addError("the number of nodes per streaming unit is unknown: set --nodes-per-unit %s=3, or a fraction such as 0.1", name)
		return nil
	}
	return &q
}
