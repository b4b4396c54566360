package local

import (
	"os"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/cloud/local/machinetest"
)

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		left := Unlimited
		s := open(t, t.TempDir(), WithResources(func(string) (Resources, error) { return Resources{Memory: left, Disk: Unlimited}, nil }))
		run(t, s)
		return cloudtest.Cloud{
			Against:  "processes of this computer, as they are used",
			Actuator: Actuator{Store: s},
			Depths:   []cloud.Depth{cloud.DepthFreeze},
			Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
				create(t, s, infraID, workers)
				return cloud.Ref{InfraID: infraID}
			},
			Vanish: func(t *testing.T, ref cloud.Ref, name string) {
				if err := os.RemoveAll(s.MachineDir(ref.InfraID, name)); err != nil {
					t.Fatal(err)
				}
			},
			Break: func(t *testing.T, ref cloud.Ref, name string) {
				machinetest.Inject(t, s.MachineDir(ref.InfraID, name), machinetest.ExitAtOnce)
			},
			Faults: cloudtest.Faults{
				RefuseDepth: func(*testing.T, cloud.Ref, cloud.Depth) { left = memoryToFreeze - 1 },
			},
		}
	})
}
