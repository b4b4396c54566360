package manager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseSecretName parses the value of a flag that names a Secret as namespace/name. An empty value
// names no Secret.
func ParseSecretName(value string) (types.NamespacedName, error) {
	if value == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, _ := strings.Cut(value, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q does not name a Secret: use namespace/name", value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// ParseSecretNames parses the values of a flag that names Secrets, each as namespace/name.
func ParseSecretNames(values []string) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for _, value := range values {
		name, err := ParseSecretName(value)
		if err == nil && name.Name == "" {
			err = errors.New("names a Secret without a name: use namespace/name")
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
