package console

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hotspare.io/hotspare/internal/console/userclient"
)

// A PageReader reads the hub for one page, with the viewer's permissions. It lives as long as the
// page is being built.
type PageReader struct {
	Viewer
	// Namespace is the namespace that the page shows; empty means all namespaces.
	Namespace string
	// Missing has a sentence for each kind that the viewer may not list. The page shows them.
	Missing []string
}

var restMapper = userclient.NewRESTMapper()

// List lists the objects of a kind that the viewer may see in the page's namespace, in no order. If
// the viewer may not list the kind, List adds a sentence to Missing and returns no error.
func (r *PageReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.listFrom(ctx, r.Namespace, list, opts...)
}

// ListAll is like List but lists all namespaces, whichever namespace the page shows: each cluster
// of a pool has a namespace of its own.
func (r *PageReader) ListAll(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.listFrom(ctx, "", list, opts...)
}

func (r *PageReader) listFrom(ctx context.Context, namespace string, list client.ObjectList, opts ...client.ListOption) error {
	mapping, err := restMapping(list)
	if err != nil {
		return err
	}
	kind := mapping.GroupVersionKind.Kind
	from := ""
	seen, err := r.canWatch(ctx, mapping, "")
	if err == nil && !seen && namespace != "" {
		from = namespace
		seen, err = r.canWatch(ctx, mapping, namespace)
	}
	if err != nil {
		return err
	}
	if !seen {
		r.recordMissing(mapping, namespace)
		return nil
	}
	reader, err := r.ReaderFor(from)
	if err != nil {
		return err
	}
	if namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		opts = append(opts, client.InNamespace(namespace))
	}
	if err := reader.List(ctx, list, opts...); err != nil {
		return fmt.Errorf("listing %ss: %w", kind, err)
	}
	return nil
}

// restMapping returns the resource of a list.
func restMapping(list client.ObjectList) (*meta.RESTMapping, error) {
	gvk, err := apiutil.GVKForObject(list, userclient.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	mapping, err := restMapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the resource of a page: %w", err)
	}
	return mapping, nil
}

func (r *PageReader) canWatch(ctx context.Context, m *meta.RESTMapping, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		yes, err := r.IsAllowed(ctx, userclient.Permission{Verb: verb, Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: namespace})
		if err != nil || !yes {
			return false, err
		}
	}
	return true, nil
}

// recordMissing adds a sentence about a kind that the viewer may not list.
func (r *PageReader) recordMissing(m *meta.RESTMapping, namespace string) {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	what := fmt.Sprintf("You do not have permission to list %ss %s.", m.GroupVersionKind.Kind, where)
	if !slices.Contains(r.Missing, what) {
		r.Missing = append(r.Missing, what)
	}
}

// IsAllowedIn reports whether the viewer may do something in a namespace. It returns false if the
// hub cannot be asked, so that the page does not offer the action.
func (r *PageReader) IsAllowedIn(ctx context.Context, verb, group, resource, namespace string) (bool, error) {
	yes, err := r.IsAllowed(ctx, userclient.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
	if errors.Is(err, userclient.ErrUnknown) {
		return false, err
	}
	return yes && err == nil, nil
}
