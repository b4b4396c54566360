package manifest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crd"
)

// Set contains the objects of documents. Each object occurs once: objects of a kind with the same
// name are the same object.
type Set struct {
	Pools          map[types.NamespacedName]*hivev1.ClusterPool
	Clusters       map[types.NamespacedName]*hivev1.ClusterDeployment
	Claims         map[types.NamespacedName]*hivev1.ClusterClaim
	ImageSets      map[types.NamespacedName]*hivev1.ClusterImageSet
	Customizations map[types.NamespacedName]*hivev1.ClusterDeploymentCustomization
	Secrets        map[types.NamespacedName]*corev1.Secret
	// Warnings are the faults of objects that were accepted nevertheless, in the order of the
	// documents.
	Warnings []Warning
	// Notes describe what was skipped or changed.
	Notes []string
}

// Warning is one fault of one object: something that the API server would reject or drop.
type Warning struct {
	// Place is the position of the object.
	Place string `json:"place"`
	// Object is its kind and name: "ClusterPool default/dev".
	Object string `json:"object"`
	// Field is the faulty field; empty if there are several, or if the object itself is at fault.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String returns the warning as a sentence.
func (w Warning) String() string {
	words := w.Place + ": " + w.Object + ": "
	if w.Field != "" {
		words += w.Field + ": "
	}
	return words + w.Message
}

// Defaults are the values for what documents leave out.
type Defaults struct {
	// Namespace is the namespace of objects that name none.
	Namespace string
	// Created is the creation time of objects that have none.
	Created time.Time
}

// Load builds a Set from documents. It sets defaults as the API server does, and returns as
// warnings what the API server would reject. A later document about the same object replaces the
// earlier one, and keeps what only the API server writes: status, creation time, and the deletion
// timestamp. Other kinds are skipped with a note. The error reports every object that cannot be
// decoded.
func Load(ctx context.Context, docs []Document, d Defaults) (*Set, error) {
	l := &loader{Defaults: d, kinds: poolKinds, schemas: map[string]*crd.Schema{}, positions: map[string]int{}, skipped: map[string]int{}}
	var errs []error
	for _, doc := range docs {
		errs = append(errs, l.addDocument(doc))
	}
	s := &Set{
		Pools:          map[types.NamespacedName]*hivev1.ClusterPool{},
		Clusters:       map[types.NamespacedName]*hivev1.ClusterDeployment{},
		Claims:         map[types.NamespacedName]*hivev1.ClusterClaim{},
		ImageSets:      map[types.NamespacedName]*hivev1.ClusterImageSet{},
		Customizations: map[types.NamespacedName]*hivev1.ClusterDeploymentCustomization{},
		Secrets:        map[types.NamespacedName]*corev1.Secret{},
	}
	for _, o := range l.objects {
		if err := l.addObjectToSet(ctx, s, o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", o.Place, o, err))
		}
	}
	s.Notes = append(s.Notes, l.replaced...)
	if len(l.skipped) > 0 {
		s.Notes = append(s.Notes, "left out, since no plan depends on it: "+l.formatSkippedKinds())
	}
	return s, errors.Join(errs...)
}

// object is a document of a known kind, and its name.
type object struct {
	Document
	kind string
	key  types.NamespacedName
}

func (o object) String() string {
	if o.key.Namespace == "" {
		return o.kind + " " + o.key.Name
	}
	return o.kind + " " + o.key.String()
}

type loader struct {
	Defaults
	// kinds are the accepted kinds.
	kinds   map[string]kind
	schemas map[string]*crd.Schema
	objects []object
	// positions maps an object to its index in the list; skipped counts the objects of each other
	// kind.
	positions map[string]int
	skipped   map[string]int
	replaced  []string
}

// kind is the version and the scope of a kind.
type kind struct {
	version    string
	namespaced bool
}

// poolKinds are the kinds that a plan of a pool depends on.
var poolKinds = map[string]kind{
	"ClusterPool":                    {hivev1.GroupVersion.String(), true},
	"ClusterDeployment":              {hivev1.GroupVersion.String(), true},
	"ClusterClaim":                   {hivev1.GroupVersion.String(), true},
	"ClusterDeploymentCustomization": {hivev1.GroupVersion.String(), true},
	"ClusterImageSet":                {hivev1.GroupVersion.String(), false},
	"Secret":                         {"v1", true},
}

// addDocument adds a document to the objects, or counts it if its kind is not accepted.
func (l *loader) addDocument(doc Document) error {
	content, err := doc.DecodeObject()
	if err != nil {
		return err
	}
	name, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	known, ours := l.kinds[name]
	if !ours || version != known.version {
		l.skipped[name+" ("+version+")"]++
		return nil
	}
	o := object{kind: name}
	o.Place = doc.Place
	if err := o.resolveObjectKey(content, l.Namespace, known.namespaced); err != nil {
		return err
	}
	i, again := l.positions[o.String()]
	if again {
		old, err := l.objects[i].DecodeObject()
		if err != nil {
			return err
		}
		copyServerFields(content, old)
	}
	if o.Document, err = newDocument(doc.Place, content); err != nil {
		return err
	}
	if again {
		l.replaced = append(l.replaced, fmt.Sprintf("%s: %s replaces that of %s; it keeps the status and age unless it sets its own", o.Place, o, l.objects[i].Place))
		l.objects[i] = o
		return nil
	}
	l.positions[o.String()] = len(l.objects)
	l.objects = append(l.objects, o)
	return nil
}

// resolveObjectKey sets the object's namespace and name. A namespaced object without a namespace
// gets the default one.
func (o *object) resolveObjectKey(content map[string]any, namespace string, namespaced bool) error {
	meta, _ := content["metadata"].(map[string]any)
	var ok bool
	if o.key.Name, ok = meta["name"].(string); !ok || o.key.Name == "" {
		return fmt.Errorf("%s: %s: metadata.name is %s", o.Place, o.kind, describeNonText(meta["name"]))
	}
	if !namespaced {
		return nil
	}
	if meta["namespace"] == nil || meta["namespace"] == "" {
		meta["namespace"] = namespace
	}
	if o.key.Namespace, ok = meta["namespace"].(string); !ok {
		return fmt.Errorf("%s: %s %s: metadata.namespace is %s", o.Place, o.kind, o.key.Name, describeNonText(meta["namespace"]))
	}
	return nil
}

// describeNonText describes a value in place of a name; YAML reads n, 7 and on as other types.
func describeNonText(v any) string {
	if v == nil || v == "" {
		return "empty, want a text"
	}
	return describeShape(v) + ", want a text: put it in quotes"
}

// copyServerFields copies from an older document what only the API server writes.
func copyServerFields(object, old map[string]any) {
	if _, has := object["status"]; !has && old["status"] != nil {
		object["status"] = old["status"]
	}
	meta, _ := object["metadata"].(map[string]any)
	before, _ := old["metadata"].(map[string]any)
	for _, k := range []string{"creationTimestamp", "deletionTimestamp", "uid", "generation"} {
		if meta[k] == nil && before[k] != nil {
			meta[k] = before[k]
		}
	}
}

// formatSkippedKinds lists the kinds that were skipped: "2 ConfigMap (v1), 1 Template
// (template.openshift.io/v1)".
func (l *loader) formatSkippedKinds() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(l.skipped)) {
		words = append(words, fmt.Sprintf("%d %s", l.skipped[kind], kind))
	}
	return strings.Join(words, ", ")
}

// addObjectToSet decodes one object into the set.
func (l *loader) addObjectToSet(ctx context.Context, s *Set, o object) error {
	content, err := o.DecodeObject()
	if err != nil {
		return err
	}
	if o.kind == "Secret" {
		return addDecodedObject(s.Secrets, o.key, content, l.Created, decodeSecret)
	}
	v, err := l.admitObject(ctx, o.kind, content)
	if err != nil {
		return err
	}
	switch o.kind {
	case "ClusterPool":
		err = addDecodedObject(s.Pools, o.key, content, l.Created, decodeStrict[hivev1.ClusterPool])
	case "ClusterDeployment":
		err = addDecodedObject(s.Clusters, o.key, content, l.Created, decodeStrict[hivev1.ClusterDeployment])
	case "ClusterClaim":
		err = addDecodedObject(s.Claims, o.key, content, l.Created, decodeStrict[hivev1.ClusterClaim])
	case "ClusterImageSet":
		err = addDecodedObject(s.ImageSets, o.key, content, l.Created, decodeStrict[hivev1.ClusterImageSet])
	default:
		err = addDecodedObject(s.Customizations, o.key, content, l.Created, decodeStrict[hivev1.ClusterDeploymentCustomization])
	}
	switch {
	case err != nil && len(v.Faults) > 0:
		return v.Faults.ToAggregate() // they explain better what cannot be decoded
	case err != nil:
		return err
	}
	s.Warnings = append(s.Warnings, o.listWarnings(v)...)
	return nil
}

func (l *loader) admitObject(ctx context.Context, kind string, content map[string]any) (crd.Findings, error) {
	if l.schemas[kind] == nil {
		schema, err := crd.LoadSchema(kind)
		if err != nil {
			return crd.Findings{}, err
		}
		l.schemas[kind] = schema
	}
	return l.schemas[kind].Admit(ctx, content)
}

func (o object) listWarnings(v crd.Findings) []Warning {
	var out []Warning
	for _, f := range v.Faults {
		out = append(out, Warning{Place: o.Place, Object: o.String(), Field: f.Field, Message: f.ErrorBody() + " (the API server refuses this)"})
	}
	for _, f := range v.Unknown {
		out = append(out, Warning{Place: o.Place, Object: o.String(), Field: f, Message: "there is no such field, so it has no effect"})
	}
	return out
}

// addDecodedObject decodes an object and adds it.
func addDecodedObject[T any, P interface {
	*T
	metav1.Object
}](into map[types.NamespacedName]P, key types.NamespacedName, content map[string]any, created time.Time, decode func(map[string]any) (P, error),
) error {
	obj, err := decode(content)
	if err != nil {
		return err
	}
	if at := obj.GetCreationTimestamp(); at.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(created))
	}
	into[key] = obj
	return nil
}

// decodeStrict decodes strictly: anything that cannot be decoded completely is an error.
func decodeStrict[T any](from map[string]any) (*T, error) {
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := utiljson.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	if r, ours := any(out).(interface{ Whole() error }); ours {
		return out, r.Whole()
	}
	return out, nil
}

// decodeSecret moves stringData to data, as the API server does. Its errors quote none of the data.
func decodeSecret(from map[string]any) (*corev1.Secret, error) {
	data, _ := from["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, isText := data[key].(string)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil || !isText && data[key] != nil {
			return nil, fmt.Errorf("data[%q] is not base64: encode it, or move it to stringData", key)
		}
	}
	s, err := decodeStrict[corev1.Secret](from)
	if err != nil {
		return nil, err
	}
	for key, text := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
	return s, nil
}
