package chaos

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyMergePatch applies a JSON merge patch (RFC 7386). It converts only the fields that the patch
// names to JSON and back, because most patches change only a few conditions.
func applyMergePatch(before client.Object, data []byte) (client.Object, error) {
	var edit map[string]any
	if err := json.Unmarshal(data, &edit); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after := deepCopyObject(before)
	v := reflect.ValueOf(after).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		change, named := edit[name]
		if !named {
			continue
		}
		if err := mergeJSONField(v.Field(i), change); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %v", name, err))
		}
	}
	return after, nil
}

func mergeJSONField(f reflect.Value, change any) error {
	raw, err := json.Marshal(f.Interface())
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return err
	}
	if raw, err = json.Marshal(mergeJSONValue(tree, change)); err != nil {
		return err
	}
	f.SetZero()
	return json.Unmarshal(raw, f.Addr().Interface())
}

func mergeJSONValue(target, change any) any {
	edit, ok := change.(map[string]any)
	if !ok {
		return change
	}
	into, ok := target.(map[string]any)
	if !ok {
		into = map[string]any{}
	}
	for key, v := range edit {
		if v == nil {
			delete(into, key)
			continue
		}
		into[key] = mergeJSONValue(into[key], v)
	}
	return into
}
