package capi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// maxTemplateObjects limits the number of objects of a template.
const maxTemplateObjects = 64

// readTemplate returns the values of the ConfigMap, in the order of their keys. For a cluster of a
// pool, the ConfigMap is in the namespace of the pool: the namespace of the cluster is new.
func (e *Executor) readTemplate(ctx context.Context, req install.Request) ([]string, error) {
	name, namespace := req.Platform.CAPI.TemplateRef.Name, cmp.Or(req.PoolNamespace, req.Cluster.Namespace)
	found, err := e.hub.Resource(clusterapi.ConfigMaps).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fault.NewWait(missingRetry, "ConfigMap %s, named by spec.platform.capi.templateRef, does not exist: create it in namespace %s", name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s in namespace %s: %w", name, namespace, err)
	}
	data, _, err := unstructured.NestedStringMap(found.Object, "data")
	if err != nil {
		return nil, fault.NewDenied("ConfigMap %s, named by spec.platform.capi.templateRef: %w", name, err)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		out = append(out, data[key])
	}
	return out, nil
}

// templateValues returns the values of the variables of a template. Those that hotspare sets have
// the names that clusterctl uses, and cannot be overridden.
func templateValues(req install.Request, infraID string) (map[string]string, error) {
	set := req.Platform.CAPI
	out := map[string]string{}
	for _, v := range set.Variables {
		var value any
		if v.Value != nil {
			if err := json.Unmarshal(v.Value.Raw, &value); err != nil {
				return nil, fault.NewDenied("spec.platform.capi.variables: the value of variable %q is not JSON: %w", v.Name, err)
			}
		}
		switch value := value.(type) {
		case string:
			out[v.Name] = value
		case float64, bool:
			out[v.Name] = string(v.Value.Raw) // as written: 1000000 stays 1000000
		default:
			return nil, fault.NewDenied("spec.platform.capi.variables: the value of variable %q is neither a string nor a number nor true or false: "+
				"a template needs one of these", v.Name)
		}
	}
	version, err := kubernetesVersion(req)
	if err != nil {
		return nil, err
	}
	out["CLUSTER_NAME"], out["NAMESPACE"], out["KUBERNETES_VERSION"] = infraID, req.Cluster.Namespace, version
	if set.ControlPlane != nil || out["CONTROL_PLANE_MACHINE_COUNT"] == "" {
		out["CONTROL_PLANE_MACHINE_COUNT"] = strconv.FormatInt(controlPlaneReplicas(set), 10)
	}
	return out, nil
}

// reference matches a reference to a variable, and $${, which stands for ${.
var reference = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

// variable matches what is between the braces: a name, and optionally a default after := or :-.
var variable = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:(:=|:-|=|-)(.*))?$`)

// substituteVariables replaces the references of a text. It returns an error that names the
// variables without a value.
func substituteVariables(text string, values map[string]string) (string, error) {
	var missing, invalid []string
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		if escaped, is := strings.CutPrefix(found, "$$"); is {
			return "$" + escaped
		}
		parts := variable.FindStringSubmatch(found[2 : len(found)-1])
		if parts == nil {
			invalid = append(invalid, found)
			return found
		}
		if value, ok := values[parts[1]]; ok {
			return value
		}
		if parts[2] == "" {
			missing = append(missing, parts[1])
			return found
		}
		return parts[3]
	})
	slices.Sort(missing)
	switch {
	case len(invalid) > 0:
		return "", fmt.Errorf("%s is not a reference that hotspare supports: write ${NAME} or ${NAME:=default}, or $${ for a literal ${", invalid[0])
	case len(missing) > 0:
		return "", fmt.Errorf("the template needs the variables %s: set them in spec.platform.capi.variables", strings.Join(slices.Compact(missing), ", "))
	}
	return out, nil
}

// renderTemplate returns the objects of a template, the Cluster last. It accepts kinds of Cluster
// API and its providers only, in the given namespace only: hotspare creates them with its own
// rights, not with those of the author of the template.
func renderTemplate(texts []string, values map[string]string, namespace, infraID string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, template := range texts {
		text, err := substituteVariables(template, values)
		if err != nil {
			return nil, err
		}
		more, err := decodeObjects(text)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	if len(objects) > maxTemplateObjects {
		return nil, fmt.Errorf("the template has %d objects, and the limit is %d: remove some", len(objects), maxTemplateObjects)
	}
	clusters := 0
	seen := map[objectRef]bool{}
	for _, o := range objects {
		if err := checkTemplateObject(o, namespace); err != nil {
			return nil, err
		}
		if seen[refOf(o)] {
			return nil, fmt.Errorf("%s is there twice: remove one", refOf(o))
		}
		seen[refOf(o)] = true
		if isCluster(o) {
			clusters++
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	if clusters != 1 {
		return nil, fmt.Errorf("the template has %d Clusters of %s: write exactly one", clusters, clusterapi.Group)
	}
	last := objects[len(objects)-1]
	if last.GetName() != infraID {
		return nil, fmt.Errorf("the Cluster has the name %q: write name: ${CLUSTER_NAME}", last.GetName())
	}
	if paused, _, _ := unstructured.NestedBool(last.Object, "spec", "paused"); paused {
		return nil, errors.New("the Cluster has spec.paused, so Cluster API would not create it: remove the field")
	}
	return objects, nil
}

func decodeObjects(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var object map[string]any
		if err == nil && len(raw.Raw) > 0 {
			err = utiljson.Unmarshal(raw.Raw, &object) // whole numbers stay whole
		}
		if err != nil {
			return nil, fmt.Errorf("the template is not valid YAML once the variables are replaced: %w", err)
		}
		if len(object) > 0 {
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}

func checkTemplateObject(o *unstructured.Unstructured, namespace string) error {
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	switch {
	case err != nil:
		return fmt.Errorf("apiVersion %q is not valid: %w", o.GetAPIVersion(), err)
	case o.GetKind() == "" || o.GetName() == "":
		return fmt.Errorf("an object of %q has no kind or no metadata.name: set both", o.GetAPIVersion())
	case gv.Group != clusterapi.Group && !strings.HasSuffix(gv.Group, "."+clusterapi.Group):
		return fmt.Errorf("%s is of API group %q: a template may contain objects of %s and of groups that end with .%s only; create others yourself",
			refOf(o), gv.Group, clusterapi.Group, clusterapi.Group)
	case o.GetNamespace() != "" && o.GetNamespace() != namespace:
		return fmt.Errorf("%s has the namespace %q: write namespace: ${NAMESPACE}, or remove it", refOf(o), o.GetNamespace())
	case len(o.GetFinalizers()) > 0 || len(o.GetOwnerReferences()) > 0:
		return fmt.Errorf("%s has finalizers or owners: remove them, because hotspare deletes it with its cluster", refOf(o))
	case isCluster(o) && gv.Version != clusterapi.Version:
		return fmt.Errorf("the Cluster is of version %q: write it as %s/%s", gv.Version, clusterapi.Group, clusterapi.Version)
	}
	return nil
}

func isCluster(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Cluster" && strings.HasPrefix(o.GetAPIVersion(), clusterapi.Group+"/")
}

// rank orders objects for their creation: the Cluster last, so that its controllers find the others.
func rank(o *unstructured.Unstructured) int {
	if isCluster(o) {
		return 1
	}
	return 0
}
