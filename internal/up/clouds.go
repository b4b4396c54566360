package up

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws"
	"hotspare.io/hotspare/internal/cloud/azure"
	"hotspare.io/hotspare/internal/cloud/baremetal"
	"hotspare.io/hotspare/internal/cloud/gcp"
	"hotspare.io/hotspare/internal/cloud/openstack"
	"hotspare.io/hotspare/internal/cloud/vsphere"
	"hotspare.io/hotspare/internal/fault"
)

// addClouds adds the actuators of those platforms whose machines are somewhere else. It
// returns what runs as long as they are used: it keeps their sessions, and logs them out.
func addClouds(to cloud.Registry, cfg *rest.Config) (tend crmanager.RunnableFunc, err error) {
	secrets, err := secretsOf(cfg)
	if err != nil {
		return nil, err
	}
	vcenters := vsphere.New(secrets)
	to["aws"], to["azure"], to["gcp"], to["vsphere"] = aws.New(secrets), azure.New(secrets, nil), gcp.New(secrets, gcp.Options{}), vcenters
	to["baremetal"] = baremetal.New(secrets)
	to["openstack"] = openstack.New(secrets)
	return vcenters.Run, nil
}

// secretsOf reads Secrets from the API server, each time anew: a cache would hold every
// Secret of the hub.
func secretsOf(cfg *rest.Config) (cloud.Secrets, error) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("making a client for Secrets: %w", err)
	}
	return func(ctx context.Context, key types.NamespacedName) (map[string][]byte, error) {
		var secret corev1.Secret
		err := c.Get(ctx, key, &secret)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fault.Denying("Secret %s in namespace %s does not exist: create it", key.Name, key.Namespace)
		case err != nil:
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		}
		return secret.Data, nil
	}, nil
}
