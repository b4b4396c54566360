package platform_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/platform"
)

func TestPlatformsAreChosen(t *testing.T) {
	for name, c := range map[string]struct {
		only                 []string
		jobs                 *job.Options
		actuators, executors string
	}{
		"all move machines, and only Cluster API makes clusters without an image": {
			actuators: "aws azure baremetal capi gcp openstack vsphere",
			executors: "capi",
		},
		"with one, those make clusters that openshift-install can": {
			jobs:      &job.Options{Image: "x"},
			actuators: "aws azure baremetal capi gcp openstack vsphere",
			executors: "aws azure baremetal capi gcp ibmcloud none nutanix openstack vsphere",
		},
		"of some, only those are there": {
			only: []string{"aws", "none"}, jobs: &job.Options{Image: "x"},
			actuators: "aws", executors: "aws none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := platform.New(&rest.Config{Host: "https://127.0.0.1:1"}, platform.Options{Only: c.only, Jobs: c.jobs})
			if err != nil {
				t.Fatal(err)
			}
			if s.Tend == nil {
				t.Error("nothing keeps the sessions")
			}
			if diff := cmp.Diff(strings.Fields(c.actuators), slices.Sorted(maps.Keys(s.Actuators))); diff != "" {
				t.Errorf("actuators: %s", diff)
			}
			if diff := cmp.Diff(strings.Fields(c.executors), append([]string{}, slices.Sorted(maps.Keys(s.Executors))...)); diff != "" {
				t.Errorf("executors: %s", diff)
			}
		})
	}
}

func TestAPlatformThatDoesNotExistIsNamed(t *testing.T) {
	_, err := platform.New(&rest.Config{}, platform.Options{Only: []string{"aws", "solaris"}})
	if err == nil || !strings.Contains(err.Error(), `"solaris"`) || !strings.Contains(err.Error(), "aws, azure") {
		t.Errorf("got %v, want an error that names it and those there are", err)
	}
}
