package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// categoryPrefix is the prefix of the tag category that the installer creates for a cluster.
const categoryPrefix = "openshift-"

const (
	kindVM     = "VirtualMachine"
	kindFolder = "Folder"
)

// findClusterMachines returns the cluster's machines in this vCenter, without templates. These are
// the machines with the installer's tag. A cluster whose machines were created manually has no such
// tag: its machines are those in folders with its infraID as name, and those whose names begin with
// it.
func (c *conn) findClusterMachines(ctx context.Context, infraID string) ([]vm, error) {
	refs, err := c.listTaggedMachines(ctx, infraID)
	if err != nil {
		return nil, fmt.Errorf("reading tags: %w", err)
	}
	vms, err := c.readMachines(ctx, refs)
	if err != nil || len(vms) > 0 {
		return markControlPlane(infraID, vms), err
	}
	refs, err = c.listMachinesByName(ctx, infraID)
	if err != nil {
		return nil, fmt.Errorf("finding folder %s and machines %s-…: %w", infraID, infraID, err)
	}
	refs, err = c.excludeForeignMachines(ctx, infraID, refs)
	if err != nil {
		return nil, fmt.Errorf("reading tags of machines %s-…: %w", infraID, err)
	}
	vms, err = c.readMachines(ctx, refs)
	return markControlPlane(infraID, vms), err
}

// listTaggedMachines returns the machines that have tag infraID of category openshift-<infraID>.
func (c *conn) listTaggedMachines(ctx context.Context, infraID string) ([]types.ManagedObjectReference, error) {
	m := tags.NewManager(c.rest)
	if err := c.refreshCategories(ctx, m); err != nil {
		return nil, err
	}
	var out []types.ManagedObjectReference
	for _, category := range c.categoriesNamed(categoryPrefix + infraID) {
		ids, err := m.ListTagsForCategory(ctx, category)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		for _, id := range ids {
			tag, err := m.GetTag(ctx, id)
			if err != nil {
				return nil, ignoreNotFound(err)
			}
			if tag.Name != infraID {
				continue
			}
			objects, err := m.ListAttachedObjects(ctx, id)
			if err != nil {
				return nil, ignoreNotFound(err)
			}
			for _, o := range objects {
				if o.Reference().Type == kindVM {
					out = append(out, o.Reference())
				}
			}
		}
	}
	return out, nil
}

// refreshCategories reads the names of new categories. vCenter cannot look up a category by name,
// and there is at least one for each cluster.
func (c *conn) refreshCategories(ctx context.Context, m *tags.Manager) error {
	ids, err := m.ListCategories(ctx)
	if err != nil {
		return translateError(err)
	}
	c.mu.Lock()
	maps.DeleteFunc(c.categories, func(id, _ string) bool { return !slices.Contains(ids, id) })
	unknown := slices.DeleteFunc(ids, func(id string) bool { _, known := c.categories[id]; return known })
	c.mu.Unlock()
	for _, id := range unknown {
		category, err := m.GetCategory(ctx, id)
		if err := ignoreNotFound(err); err != nil {
			return err
		}
		if category == nil {
			continue
		}
		c.mu.Lock()
		c.categories[id] = category.Name
		c.mu.Unlock()
	}
	return nil
}

func (c *conn) categoriesNamed(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for id, other := range c.categories {
		if other == name {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// listMachinesByName returns the machines in folders named infraID, and those named infraID-….
func (c *conn) listMachinesByName(ctx context.Context, infraID string) ([]types.ManagedObjectReference, error) {
	root := c.vim.ServiceContent.RootFolder
	folders, err := c.listBelowFolder(ctx, root, kindFolder, func(name string) bool { return name == infraID })
	if err != nil {
		return nil, err
	}
	out, err := c.listBelowFolder(ctx, root, kindVM, func(name string) bool { return strings.HasPrefix(name, infraID+"-") })
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		refs, err := c.listBelowFolder(ctx, f, kindVM, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out, nil
}

// listBelowFolder returns the objects of a kind below a folder, at any depth, whose names satisfy
// want.
func (c *conn) listBelowFolder(ctx context.Context, folder types.ManagedObjectReference, kind string, want func(string) bool) (_ []types.ManagedObjectReference, err error) {
	v, err := view.NewManager(c.vim).CreateContainerView(ctx, folder, []string{kind}, true)
	if err != nil {
		return nil, translateError(err)
	}
	// A view exists until its session ends, which takes long.
	defer func() { err = errors.Join(err, translateError(v.Destroy(context.WithoutCancel(ctx)))) }()
	var found []types.ObjectContent
	if err := v.Retrieve(ctx, []string{kind}, []string{"name"}, &found); err != nil {
		return nil, translateError(err)
	}
	var out []types.ManagedObjectReference
	for _, o := range found {
		for _, p := range o.PropSet {
			if name, ok := p.Val.(string); ok && want(name) {
				out = append(out, o.Obj)
			}
		}
	}
	return out, nil
}

// excludeForeignMachines removes machines that have another cluster's tag: the names of two
// clusters may have a common prefix, but the installer's tag is unique.
func (c *conn) excludeForeignMachines(ctx context.Context, infraID string, refs []types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	m := tags.NewManager(c.rest)
	objects := make([]mo.Reference, len(refs))
	for i := range refs {
		objects[i] = refs[i]
	}
	attached, err := m.ListAttachedTagsOnObjects(ctx, objects)
	if err != nil {
		return nil, translateError(err)
	}
	foreign, ids := map[types.ManagedObjectReference]bool{}, map[string]bool{}
	for _, a := range attached {
		for _, id := range a.TagIDs {
			if _, known := ids[id]; !known {
				if ids[id], err = c.isOtherClusterTag(ctx, m, id, infraID); err != nil {
					return nil, err
				}
			}
			if ids[id] {
				foreign[a.ObjectID.Reference()] = true
			}
		}
	}
	return slices.DeleteFunc(refs, func(ref types.ManagedObjectReference) bool { return foreign[ref] }), nil
}

// isOtherClusterTag reports whether a tag is the installer's mark of a cluster other than infraID.
func (c *conn) isOtherClusterTag(ctx context.Context, m *tags.Manager, id, infraID string) (bool, error) {
	tag, err := m.GetTag(ctx, id)
	if err := ignoreNotFound(err); err != nil || tag == nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.categories[tag.CategoryID]
	return strings.HasPrefix(name, categoryPrefix) && name != categoryPrefix+infraID, nil
}

// ignoreNotFound returns nil for errors that mean that an object no longer exists.
func ignoreNotFound(err error) error {
	var status statusError
	if errors.As(err, &status) && status == http.StatusNotFound {
		return nil
	}
	return translateError(err)
}
