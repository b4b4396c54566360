package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the owner of the fields of applied manifests.
const fieldOwner = client.FieldOwner("hotspare-up")

// establishLimit bounds the wait for a kind to be served.
const establishLimit = 30 * time.Second

// applyManifests applies the manifests that the controllers need, and waits until the kinds among
// them are served. It applies the admission policies first: they protect a kind from its first moment on.
func applyManifests(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	policies, others := separatePolicies(objects)
	if err := applyObjects(ctx, c, policies); err != nil {
		return err
	}
	if err := applyObjects(ctx, c, others); err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitForEstablished(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// separatePolicies returns the admission policies and their bindings, and all other objects.
func separatePolicies(objects []*unstructured.Unstructured) (policies, others []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GroupVersionKind().Group == admissionv1.GroupName {
			policies = append(policies, o)
		} else {
			others = append(others, o)
		}
	}
	return policies, others
}

// applier is a client that applies objects server-side.
type applier interface {
	Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error
}

// optionalKinds are kinds that an older API server may not have; hotspare works without them.
var optionalKinds = []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}

// appliers is how many objects are applied at a time: the API server compiles the rules of each.
const appliers = 8

// applyObjects applies objects in any order. It returns the first error.
func applyObjects(ctx context.Context, c applier, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(appliers)
	for _, o := range objects {
		group.Go(func() error {
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership)
			if meta.IsNoMatchError(err) && slices.Contains(optionalKinds, o.GetKind()) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// readManifests reads all objects of all files, in the order of their paths.
func readManifests(files fs.FS) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // an embedded file
		objects, err := decodeObjects(f)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, objects...)
		return nil
	})
	return out, err
}

func decodeObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := dec.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}

func waitForEstablished(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, establishLimit, true, func(ctx context.Context) (bool, error) {
		now := crd.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), now); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return isEstablished(now), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for kind %s to be served: %w", crd.GetName(), err)
	}
	return nil
}

// isEstablished reports whether the kind is served. The conditions of a new CRD are null.
func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions") // an error means that there is no list yet
	for _, one := range conditions {
		if m, ok := one.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
