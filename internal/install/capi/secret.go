package capi

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decodeSecretKey returns the value of a key of a Secret; nil if the Secret does not have it. Its
// error does not quote the value.
func decodeSecretKey(secret *unstructured.Unstructured, key string) ([]byte, error) {
	text, found, err := unstructured.NestedString(secret.Object, "data", key)
	if err != nil || !found {
		return nil, err
	}
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("key %s is not base64", key)
	}
	return value, nil
}
