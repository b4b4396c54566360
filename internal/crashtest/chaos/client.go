package chaos

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is a client.Client that reads from a view or from the store, and writes to the store.
// Calls of a scheduler's task wait until the scheduler releases them. Methods that the controllers
// under test do not use panic.
type Client struct {
	unsupported
	store   *Store
	from    source
	indexes *Indexes
}

// NewClient returns a client that reads and writes the store itself.
func (s *Store) NewClient() *Client { return &Client{store: s, from: s} }

// NewClient returns a client that reads from the view and writes to its store.
func (v *View) NewClient() *Client { return &Client{store: v.store, from: v, indexes: v.indexes} }

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k := c.store.kindFor(into)
	return waitForTurn(ctx, Call{Verb: c.readVerb("get"), Kind: k.name, Key: key}, func() error {
		return getObject(c.from, k, key, into)
	})
}

// List implements client.Reader, with namespaces, label selectors and exact fields.
func (c *Client) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	k := c.store.kindForList(into)
	var o client.ListOptions
	o.ApplyOptions(opts)
	return waitForTurn(ctx, Call{Verb: c.readVerb("list"), Kind: k.name}, func() error {
		objects, err := selectObjects(c.from, k, c.indexes, o)
		if err != nil {
			return err
		}
		if t := TaskFromContext(ctx); t != nil && !c.readsStore() {
			t.recordListed(k.name, objects)
		}
		fillListItems(into, objects, o)
		return nil
	})
}

func (c *Client) readsStore() bool { return c.from == source(c.store) }

// readVerb returns the verb of a read, marked as live if it reads the store.
func (c *Client) readVerb(read string) string {
	if c.readsStore() {
		return "live " + read
	}
	return read
}

// Create implements client.Writer.
func (c *Client) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	return waitForTurn(ctx, c.writeCall("create", o, nil), func() error { return c.store.Create(ctx, o) })
}

// Delete implements client.Writer, with preconditions.
func (c *Client) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	return waitForTurn(ctx, c.writeCall("delete", o, nil), func() error { return c.store.Delete(ctx, o, d.Preconditions) })
}

// Patch implements client.Writer, for merge patches.
func (c *Client) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return c.patchObject(ctx, o, p, false)
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return status{c} }

type status struct{ c *Client }

// Patch implements client.SubResourceWriter, for merge patches.
func (s status) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.c.patchObject(ctx, o, p, true)
}

func (c *Client) patchObject(ctx context.Context, o client.Object, p client.Patch, status bool) error {
	if p.Type() != types.MergePatchType {
		panicUnsupported(fmt.Sprintf("a patch of type %s", p.Type()))
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	verb := "patch"
	if status {
		verb = "patch status"
	}
	return waitForTurn(ctx, c.writeCall(verb, o, data), func() error { return c.store.Patch(ctx, o, data, status) })
}

func (c *Client) writeCall(verb string, o client.Object, data []byte) Call {
	return Call{Verb: verb, Kind: c.store.kindFor(o).name, Key: client.ObjectKeyFromObject(o), Data: data}
}

// Scheme implements client.Client.
func (c *Client) Scheme() *runtime.Scheme { return c.store.scheme }

// unsupported implements the methods that no controller under test uses. They panic.
type unsupported struct{}

func panicUnsupported(what string) {
	panic("chaos: " + what + " is not supported: teach it to package chaos, and to its conformance test")
}

// Apply panics.
func (unsupported) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	panicUnsupported("Apply")
	return nil
}

// Update panics.
func (unsupported) Update(context.Context, client.Object, ...client.UpdateOption) error {
	panicUnsupported("Update")
	return nil
}

// DeleteAllOf panics.
func (unsupported) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	panicUnsupported("DeleteAllOf")
	return nil
}

// SubResource panics.
func (unsupported) SubResource(string) client.SubResourceClient {
	panicUnsupported("SubResource")
	return nil
}

// RESTMapper panics.
func (unsupported) RESTMapper() meta.RESTMapper {
	panicUnsupported("RESTMapper")
	return nil
}

// GroupVersionKindFor panics.
func (unsupported) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	panicUnsupported("GroupVersionKindFor")
	return schema.GroupVersionKind{}, nil
}

// IsObjectNamespaced panics.
func (unsupported) IsObjectNamespaced(runtime.Object) (bool, error) {
	panicUnsupported("IsObjectNamespaced")
	return false, nil
}

// Create panics.
func (status) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	panicUnsupported("Status().Create")
	return nil
}

// Update panics.
func (status) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	panicUnsupported("Status().Update")
	return nil
}

// Apply panics.
func (status) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	panicUnsupported("Status().Apply")
	return nil
}
