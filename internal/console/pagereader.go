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

// A PageReader is the hub as one page sees it, for as long as it takes to make the page.
type PageReader struct {
	Viewer
	// Namespace is the one looked at; empty: all of them.
	Namespace string
	// Missing are sentences about what the viewer may not see; the page shows them.
	Missing []string
}

var restMapper = userclient.NewRESTMapper()

// List lists what the viewer may see of a kind in the namespace looked at. What may not
// be seen is noted in Missing, and is not an error. The list is in no order.
func (l *PageReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.listFrom(ctx, l.Namespace, list, opts...)
}

// ListAll lists what the viewer may see of a kind in all namespaces, whichever is looked
// at: clusters of a pool live in namespaces of their own.
func (l *PageReader) ListAll(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.listFrom(ctx, "", list, opts...)
}

func (l *PageReader) listFrom(ctx context.Context, namespace string, list client.ObjectList, opts ...client.ListOption) error {
	mapping, err := restMapping(list)
	if err != nil {
		return err
	}
	kind := mapping.GroupVersionKind.Kind
	from := ""
	seen, err := l.canWatch(ctx, mapping, "")
	if err == nil && !seen && namespace != "" {
		from = namespace
		seen, err = l.canWatch(ctx, mapping, namespace)
	}
	if err != nil {
		return err
	}
	if !seen {
		l.recordMissing(mapping, namespace)
		return nil
	}
	sight, err := l.ReaderFor(from)
	if err != nil {
		return err
	}
	if namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		opts = append(opts, client.InNamespace(namespace))
	}
	if err := sight.List(ctx, list, opts...); err != nil {
		return fmt.Errorf("looking at %ss: %w", kind, err)
	}
	return nil
}

// restMapping is the resource of a list.
func restMapping(list client.ObjectList) (*meta.RESTMapping, error) {
	gvk, err := apiutil.GVKForObject(list, userclient.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	mapping, err := restMapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("looking for the kind of a page: %w", err)
	}
	return mapping, nil
}

func (l *PageReader) canWatch(ctx context.Context, m *meta.RESTMapping, namespace string) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		yes, err := l.IsAllowed(ctx, userclient.Permission{Verb: verb, Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: namespace})
		if err != nil || !yes {
			return false, err
		}
	}
	return true, nil
}

// recordMissing notes that a kind may not be seen.
func (l *PageReader) recordMissing(m *meta.RESTMapping, namespace string) {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	what := fmt.Sprintf("You do not have permission to list %ss %s.", m.GroupVersionKind.Kind, where)
	if !slices.Contains(l.Missing, what) {
		l.Missing = append(l.Missing, what)
	}
}

// IsAllowedIn reports whether the viewer may do it in a namespace. When nobody can tell, it
// is not offered.
func (l *PageReader) IsAllowedIn(ctx context.Context, verb, group, resource, namespace string) (bool, error) {
	yes, err := l.IsAllowed(ctx, userclient.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
	if errors.Is(err, userclient.ErrUnknown) {
		return false, err
	}
	return yes && err == nil, nil
}
