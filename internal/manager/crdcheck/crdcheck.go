// Package crdcheck finds the kinds of hotspare that a hub does not serve.
package crdcheck

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

// DiscoveryClient lists the resources that a hub serves.
type DiscoveryClient interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// kind contains the fields of a CustomResourceDefinition that this package needs.
type kind struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group    string
		Names    struct{ Plural string }
		Versions []struct {
			Name   string
			Served bool
		}
	}
}

// ListMissingKinds returns the names of the CustomResourceDefinitions that the controllers need and
// h does not serve, sorted. If h does not serve one of the required versions, the result names that
// version, too.
func ListMissingKinds(h DiscoveryClient) ([]string, error) {
	all, err := readRequiredKinds()
	if err != nil {
		return nil, err
	}
	served := map[string]map[string]bool{}
	var out []string
	for _, k := range all {
		for _, v := range k.Spec.Versions {
			if !v.Served {
				continue
			}
			gv := k.Spec.Group + "/" + v.Name
			if served[gv] == nil {
				if served[gv], err = listServedResources(h, gv); err != nil {
					return nil, err
				}
			}
			if !served[gv][k.Spec.Names.Plural] {
				out = append(out, fmt.Sprintf("%s (%s)", k.Metadata.Name, v.Name))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// listServedResources returns the names of the resources that h serves in a group version.
func listServedResources(h DiscoveryClient, gv string) (map[string]bool, error) {
	out := map[string]bool{}
	list, err := h.ServerResourcesForGroupVersion(gv)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of %s on the hub: %w", gv, err)
	}
	for _, r := range list.APIResources {
		out[r.Name] = true
	}
	return out, nil
}

// readRequiredKinds reads the kinds from the manifests that this program was built with.
func readRequiredKinds() ([]kind, error) {
	files, err := fs.Glob(config.Manifests, "crd/*.yaml")
	if err != nil {
		return nil, err
	}
	out := make([]kind, len(files))
	for i, name := range files {
		raw, err := config.Manifests.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(raw, &out[i])
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return out, nil
}

// pollInterval is how often WaitUntilServed checks the kinds.
const pollInterval = 2 * time.Second

// WaitUntilServed returns true when h serves all kinds, and false when ctx ends first. It
// reports the reason for waiting to its callback whenever that reason changes.
func WaitUntilServed(ctx context.Context, h DiscoveryClient, tell func(why string)) bool {
	var told string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		why := waitMessage(ListMissingKinds(h))
		if why != "" && why != told {
			tell(why)
			told = why
		}
		return why == "", nil
	})
	return err == nil
}

func waitMessage(missing []string, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(missing) > 0:
		return "CustomResourceDefinitions are missing: " + strings.Join(missing, ", ") +
			": apply config/crd of this version, or install its chart with crds.enabled=true"
	default:
		return ""
	}
}
