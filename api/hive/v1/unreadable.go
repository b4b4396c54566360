package v1

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// Reading says how well a stored object fits its type.
//
// The schema keeps out what does not, but some may be stored all the same: before
// the schema was tightened, or under somebody else's. A list that is read whole or
// not at all would be hidden by one such object (known from the field as "lifetime:
// 1w froze all claims"). So each kind is read as far as possible, and says so here.
// Who acts on an object must do nothing that what is missing could speak against.
// To write it back as a whole would lose what could not be read; a patch keeps it.
type Reading struct {
	// Unreadable says what could not be read; empty when all could. Fields beside it
	// may be missing, too. It is never stored.
	Unreadable string `json:"-"`
}

// Whole is an error if not all of the object could be read.
func (r Reading) Whole() error {
	if r.Unreadable == "" {
		return nil
	}
	return errors.New(r.Unreadable)
}

// Read reads data as far as it fits into T, a kind without its UnmarshalJSON; a status
// that does not fit is left out. An error is data that is no object.
func Read[T any](data []byte) (into T, r Reading, err error) {
	if err = json.Unmarshal(data, &into); err == nil {
		return into, r, nil
	}
	var tree map[string]any
	if json.Unmarshal(data, &tree) != nil || tree == nil {
		return into, r, err
	}
	why := misfit(tree, err)
	if rest, ok := withoutStatus[T](tree); ok {
		return rest, Reading{why}, nil
	}
	return into, Reading{why}, nil
}

// withoutStatus reads all but the status. If it can, what does not fit is in the
// status, and half of a list of conditions would be refused when it is written.
func withoutStatus[T any](tree map[string]any) (rest T, ok bool) {
	delete(tree, "status")
	raw, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(raw, &rest)
	}
	return rest, err == nil
}

// misfit says which field cannot be read and what could stand there. Of a value in
// a list it tells the type only: variables of the installer may be secret.
func misfit(tree map[string]any, err error) string {
	var bad *gojson.UnmarshalTypeError
	if !errors.As(err, &bad) || bad.Field == "" {
		return err.Error() // a time or a quantity
	}
	told := map[string]string{"object": "an object", "array": "a list"}[bad.Value]
	if told == "" {
		told = "a " + strings.Fields(bad.Value)[0]
	}
	switch v := at(tree, strings.Split(bad.Field, ".")).(type) {
	case bool, int64, float64:
		told = fmt.Sprint(v)
	case string:
		told = fmt.Sprintf("%.64q", v)
	}
	return fmt.Sprintf("%s: %s is not %s", bad.Field, told, wanted(bad.Type))
}

func at(v any, path []string) any {
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func wanted(t reflect.Type) string {
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

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterPool) UnmarshalJSON(data []byte) error {
	type plain ClusterPool
	p, r, err := Read[plain](listed(data))
	p.Reading = r
	*o = ClusterPool(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterClaim) UnmarshalJSON(data []byte) error {
	type plain ClusterClaim
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterClaim(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterDeployment) UnmarshalJSON(data []byte) error {
	type plain ClusterDeployment
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterDeployment(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterDeploymentCustomization) UnmarshalJSON(data []byte) error {
	type plain ClusterDeploymentCustomization
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterDeploymentCustomization(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterImageSet) UnmarshalJSON(data []byte) error {
	type plain ClusterImageSet
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterImageSet(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterProvision) UnmarshalJSON(data []byte) error {
	type plain ClusterProvision
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterProvision(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *ClusterDeprovision) UnmarshalJSON(data []byte) error {
	type plain ClusterDeprovision
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = ClusterDeprovision(p)
	return err
}

// UnmarshalJSON reads as much as can be read, see Reading.
func (o *MachinePool) UnmarshalJSON(data []byte) error {
	type plain MachinePool
	p, r, err := Read[plain](data)
	p.Reading = r
	*o = MachinePool(p)
	return err
}
