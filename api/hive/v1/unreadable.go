package v1

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// Reading reports whether a stored object could be decoded completely.
//
// The schema rejects objects that do not fit their type, but such an object may have been stored
// before the schema was tightened, or under another schema. If decoding failed, one such object
// would make a list of all objects fail (known from the field as "lifetime: 1w froze all claims").
// Therefore each kind is decoded as far as possible, and Reading records what is missing. A
// controller must do nothing that the missing fields could forbid. Do not write the object back as
// a whole, because that would delete the fields that could not be read; a patch keeps them.
type Reading struct {
	// Unreadable describes what could not be read; it is empty if everything could. Other fields
	// may be missing, too. It is never stored.
	Unreadable string `json:"-"`
}

// Whole returns an error if the object could not be decoded completely.
func (r Reading) Whole() error {
	if r.Unreadable == "" {
		return nil
	}
	return errors.New(r.Unreadable)
}

// Read decodes as much of data as fits T, a kind without its UnmarshalJSON. A status that does not
// fit is left out. It returns an error only if data is not a JSON object.
func Read[T any](data []byte) (into T, r Reading, err error) {
	if err = json.Unmarshal(data, &into); err == nil {
		return into, r, nil
	}
	var tree map[string]any
	if json.Unmarshal(data, &tree) != nil || tree == nil {
		return into, r, err
	}
	why := describeMismatch(tree, err)
	if rest, ok := withoutStatus[T](tree); ok {
		return rest, Reading{why}, nil
	}
	return into, Reading{why}, nil
}

// withoutStatus decodes everything except the status. If that succeeds, the status contains the
// value that does not fit; it is left out as a whole, because the API server would reject a
// half-decoded list of conditions.
func withoutStatus[T any](tree map[string]any) (rest T, ok bool) {
	delete(tree, "status")
	raw, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(raw, &rest)
	}
	return rest, err == nil
}

// describeMismatch returns which field cannot be read and which values are valid. For a value in a
// list it names only the type: environment variables of the installer may be secret.
func describeMismatch(tree map[string]any, err error) string {
	var bad *gojson.UnmarshalTypeError
	if !errors.As(err, &bad) || bad.Field == "" {
		return err.Error() // a time or a quantity
	}
	found := map[string]string{"object": "an object", "array": "a list"}[bad.Value]
	if found == "" {
		found = "a " + strings.Fields(bad.Value)[0]
	}
	switch v := at(tree, strings.Split(bad.Field, ".")).(type) {
	case bool, int64, float64:
		found = fmt.Sprint(v)
	case string:
		found = fmt.Sprintf("%.64q", v)
	}
	return fmt.Sprintf("%s: %s is not %s", bad.Field, found, describeType(bad.Type))
}

func at(v any, path []string) any {
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// describeType returns which values a type accepts.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int32:
		return "a whole number of at most 2147483647"
	case reflect.Int, reflect.Int64:
		return "a whole number of at most 9223372036854775807"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a " + t.Kind().String()
	}
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (c *ClusterPool) UnmarshalJSON(data []byte) error {
	type plain ClusterPool
	p, r, err := Read[plain](normalizeInventory(data))
	p.Reading = r
	*c = ClusterPool(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (c *ClusterClaim) UnmarshalJSON(data []byte) error {
	type plain ClusterClaim
	p, r, err := Read[plain](data)
	p.Reading = r
	*c = ClusterClaim(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (d *ClusterDeployment) UnmarshalJSON(data []byte) error {
	type plain ClusterDeployment
	p, r, err := Read[plain](data)
	p.Reading = r
	*d = ClusterDeployment(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (c *ClusterDeploymentCustomization) UnmarshalJSON(data []byte) error {
	type plain ClusterDeploymentCustomization
	p, r, err := Read[plain](data)
	p.Reading = r
	*c = ClusterDeploymentCustomization(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (s *ClusterImageSet) UnmarshalJSON(data []byte) error {
	type plain ClusterImageSet
	p, r, err := Read[plain](data)
	p.Reading = r
	*s = ClusterImageSet(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (c *ClusterProvision) UnmarshalJSON(data []byte) error {
	type plain ClusterProvision
	p, r, err := Read[plain](data)
	p.Reading = r
	*c = ClusterProvision(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (d *ClusterDeprovision) UnmarshalJSON(data []byte) error {
	type plain ClusterDeprovision
	p, r, err := Read[plain](data)
	p.Reading = r
	*d = ClusterDeprovision(p)
	return err
}

// UnmarshalJSON decodes as much as possible: see Reading.
func (m *MachinePool) UnmarshalJSON(data []byte) error {
	type plain MachinePool
	p, r, err := Read[plain](data)
	p.Reading = r
	*m = MachinePool(p)
	return err
}
