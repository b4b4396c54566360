package platform

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws"
	"hotspare.io/hotspare/internal/cloud/azure"
	"hotspare.io/hotspare/internal/cloud/baremetal"
	"hotspare.io/hotspare/internal/cloud/capi"
	"hotspare.io/hotspare/internal/cloud/gcp"
	"hotspare.io/hotspare/internal/cloud/openstack"
	"hotspare.io/hotspare/internal/cloud/vsphere"
	"hotspare.io/hotspare/internal/fault"
)

// newActuators returns the actuators of all platforms whose machines can be started and stopped,
// and a function that maintains their sessions. Every connection trusts the certificates of
// authorities in addition to the system's.
func newActuators(hub dynamic.Interface, secrets cloud.Secrets, authorities *cabundle.Source) (cloud.Registry, func(context.Context) error) {
	vcenters := vsphere.New(secrets, authorities)
	transport := authorities.NewTransport(http.DefaultTransport.(*http.Transport)) //nolint:forcetypeassert // the standard library guarantees the type
	ec2, compute := aws.New(secrets, aws.WithAuthorities(authorities)), gcp.New(secrets, gcp.Options{Transport: transport})
	arm, nova := azure.New(secrets, transport), openstack.New(secrets, authorities)
	return cloud.Registry{
		"aws":       ec2,
		"azure":     arm,
		"baremetal": baremetal.New(secrets, authorities),
		"capi": capi.New(hub, []capi.Provider{
			{Key: "aws", Scheme: "aws", Actuator: ec2},
			{Key: "azure", Scheme: "azure", Actuator: arm},
			{Key: "gcp", Scheme: "gce", Actuator: compute},
			{Key: "openstack", Scheme: "openstack", Actuator: nova},
			{Key: "vsphere", Scheme: "vsphere", Actuator: vcenters},
		}, nil),
		"gcp":       compute,
		"openstack": nova,
		"vsphere":   vcenters,
	}, vcenters.Run
}

// newSecretReader returns a reader of Secrets that calls the API server each time: a cache would
// keep every Secret of the hub in memory.
func newSecretReader(cfg *rest.Config) (cloud.Secrets, error) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("creating a client for Secrets: %w", err)
	}
	return func(ctx context.Context, key types.NamespacedName) (map[string][]byte, error) {
		var secret corev1.Secret
		err := c.Get(ctx, key, &secret)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fault.NewDenied("Secret %s in namespace %s does not exist: create it", key.Name, key.Namespace)
		case err != nil:
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		}
		return secret.Data, nil
	}, nil
}
