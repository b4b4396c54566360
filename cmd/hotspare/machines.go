package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/platform"
)

// findMachines returns the names of the machines of a cluster, as the controllers of a hub would find
// them, with the rights of the user that config names.
func findMachines(ctx context.Context, config *rest.Config, cd *hivev1.ClusterDeployment) ([]string, error) {
	set, err := platform.New(config, platform.Options{})
	if err != nil {
		return nil, err
	}
	actuator := set.Actuators.ActuatorFor(cd.Spec.Platform)
	if actuator == nil {
		return nil, fmt.Errorf("platform %q cannot start and stop machines", cd.Spec.Platform.Name())
	}
	ctx, cancel := context.WithCancel(ctx)
	tended := make(chan error, 1)
	go func() { tended <- set.Tend(ctx) }()
	machines, err := actuator.Observe(ctx, cloud.Ref{
		Cluster: client.ObjectKeyFromObject(cd), InfraID: cd.Spec.ClusterMetadata.InfraID,
		Platform: cd.Spec.Platform, Metadata: cd.Spec.ClusterMetadata,
	})
	cancel()
	<-tended //nolint:errcheck // logging out does not change what was found
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return names, nil
}
