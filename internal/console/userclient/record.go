package userclient

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing/record"
)

// ErrNotRecord is the error of a ConfigMap with the name of a record that is none.
var ErrNotRecord = errors.New("the ConfigMap is not a record of claims")

// recordMapper knows ConfigMaps, which the mapper of pages does not: ReadRecord is the only way to read one.
var recordMapper = func() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return m
}()

// ReadRecord reads the ConfigMap with the record of claims of a pool, with the user's permissions. No other
// ConfigMap can be read. The error is ErrNotRecord if it has not the label of a record, and that of the API server if
// there is none.
func (u *User) ReadRecord(ctx context.Context, pool types.NamespacedName) (*corev1.ConfigMap, error) {
	c, err := client.New(u.transport.cfg, client.Options{HTTPClient: u.transport.http, Scheme: scheme, Mapper: recordMapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of records: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var cm corev1.ConfigMap
	if err := c.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: record.ConfigMapName(pool.Name)}, &cm); err != nil {
		return nil, u.recordAuthError(fmt.Errorf("reading the record of pool %s: %w", pool, err))
	}
	if cm.Labels[v1alpha1.LabelDemandRecord] != pool.Name {
		return nil, ErrNotRecord
	}
	return &cm, nil
}
