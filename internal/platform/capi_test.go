package platform

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/clusterapi/capitest"
	"hotspare.io/hotspare/internal/fault"
)

// Each provider of spec.platform.capi has an actuator for the provider IDs that its Machines have.
func TestEachProviderOfClusterAPIHasAnActuator(t *testing.T) {
	empty := &runtime.RawExtension{Raw: []byte("{}")}
	all := (&hivev1.CAPIProviders{AWS: empty, Azure: empty, GCP: empty, OpenStack: empty, VSphere: empty}).Platforms()
	ids := map[string]string{
		"aws":       "aws:///us-east-1a/i-0123456789abcdef0",
		"azure":     "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m",
		"gcp":       "gce://project/us-east1-b/m",
		"openstack": "openstack:///00000000-0000-4000-8000-000000000001",
		"vsphere":   "vsphere://00000000-0000-4000-8000-000000000001",
	}
	if len(all) != len(ids) {
		t.Fatalf("%d providers, and %d are tested", len(all), len(ids))
	}
	for _, p := range all {
		hub := capitest.New(t, clock.RealClock{})
		hub.Add(capitest.Object(clusterapi.Group+"/"+clusterapi.Version, "Cluster", "ns", "c", map[string]any{}))
		hub.AddMachine("ns", "c", "md-0", ids[p.Name()], false)
		actuators, _ := newActuators(hub, nil, nil)
		ref := cloud.Ref{Cluster: types.NamespacedName{Namespace: "ns", Name: "cd"}, InfraID: "c", Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{}}}
		_, err := actuators["capi"].Observe(t.Context(), ref)
		if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "spec.platform.capi.providers."+p.Name()+" of ClusterDeployment ns/cd is empty") {
			t.Errorf("%s: %v", p.Name(), err)
		}
		if _, ok := actuators[p.Name()].(cloud.InstanceSelector); !ok {
			t.Errorf("%s selects no instances", p.Name())
		}
	}
}
