// Package kas reads the configuration files of kas-fleet-manager: instance types,
// providers with their limits, dynamic scaling and node prewarming. It says in
// InstanceTypes and FleetRegions what they mean.
//
// It is strict. A key that is not known, a type or a size that there is not, slack above
// the limit, a number that is negative and a minimum above its maximum are errors that
// name file, path and value. (There a misspelt key was ignored, a broken prewarming file
// was taken for none, and one that was left out stopped the program.)
package kas

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The files, by the names that they have in kas-fleet-manager.
const (
	TypesFile      = "kafka-instance-types-configuration.yaml"
	ProvidersFile  = "provider-configuration.yaml"
	ScalingFile    = "dynamic-scaling-configuration.yaml"
	PrewarmingFile = "node-prewarming-configuration.yaml"
)

// Names are those of all files that are read.
var Names = []string{TypesFile, ProvidersFile, ScalingFile, PrewarmingFile}

// File is one of them.
type File struct {
	// Name is how it is called in errors.
	Name string
	Text []byte
}

// Options are what the files do not say.
type Options struct {
	// Namespace is that of the FleetRegions.
	Namespace string
	// Pool and MultiZonePool are the ClusterPools that data planes are claimed from; empty
	// ones are called after the region.
	Pool, MultiZonePool string
	// NodesPerUnit is how many nodes a streaming unit takes, by type. For standard and
	// developer it is known: 3 and 0.1.
	NodesPerUnit map[string]string
}

// Result is what the files come to.
type Result struct {
	Types   []*v1alpha1.InstanceType
	Regions []*v1alpha1.FleetRegion
	// Notes tell what was left out, and what is to be done beside.
	Notes []string
}

// Read reads the files, by their names as in Names. That of the types has to be there;
// without that of the providers there are no regions. The error tells of all that is wrong.
func Read(files map[string]File, o Options) (Result, error) {
	r := &reader{Options: o, ignoredKeys: map[string]bool{}, types: map[string]*v1alpha1.InstanceType{}}
	f, ok := files[TypesFile]
	if !ok {
		return Result{}, fmt.Errorf("there is no %s: all others refer to its types", TypesFile)
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
	// ignoredKeys are keys that are known and have no meaning here.
	ignoredKeys map[string]bool
	// order are the names of types as they come.
	order   []string
	types   map[string]*v1alpha1.InstanceType
	regions []*v1alpha1.FleetRegion
	scaling *node
	// reserved is what is reserved of a type.
	reserved                   map[string]*v1alpha1.Reserved
	scaleUpMode, scaleDownMode v1alpha1.ScalingMode
	// defaultNodePools are the nodes for no type, by provider.
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
		m.Notes = append(m.Notes, "left out, since there is nothing like it here: "+strings.Join(left, ", "))
	}
	if _, ok := files[ScalingFile]; !ok {
		m.Notes = append(m.Notes, "without "+ScalingFile+" the types have no nodePools: add them before data planes are made")
	}
	var pools []string
	for _, fr := range r.regions {
		for _, p := range fr.Spec.ClusterSource.Claim.Pools {
			pools = append(pools, p.PoolRef.Name)
		}
	}
	slices.Sort(pools)
	if pools = slices.Compact(pools); len(pools) > 0 {
		m.Notes = append(m.Notes, "data planes are claimed from these ClusterPools, which the files know nothing of: "+strings.Join(pools, ", "))
	}
	return m
}

// findType finds a type that some file refers to.
func (r *reader) findType(n node, name string) *v1alpha1.InstanceType {
	it := r.types[name]
	if it == nil {
		n.addError("there is no type %q: %s has %s", name, TypesFile, strings.Join(r.order, ", "))
	}
	return it
}

// defaultNodesPerUnit is what the agent of kas-fleetshard had built in.
var defaultNodesPerUnit = map[string]string{"standard": "3", "developer": "0.1"}

func (r *reader) parseNodesPerUnit(n node, name string) *resource.Quantity {
	text := cmp.Or(r.NodesPerUnit[name], defaultNodesPerUnit[name])
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		n.addError("how many nodes does a streaming unit take? Say --nodes-per-unit %s=3, or a fraction such as 0.1", name)
		return nil
	}
	return &q
}
