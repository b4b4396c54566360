package aws

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/fault"
)

// selectInstances returns the actuator for instances with these IDs, of which the first is a control
// plane.
func (l *lab) selectInstances(t *testing.T, ids ...string) cloud.Actuator {
	t.Helper()
	var list []cloud.Instance
	for i, id := range ids {
		list = append(list, cloud.Instance{ProviderID: "aws:///us-east-1a/" + id, Name: "m" + id[len(id)-1:], ControlPlane: i == 0})
	}
	a, err := l.ForInstances(list)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSelectedInstancesAreControlledWithoutATag(t *testing.T) {
	l := newLab(t)
	first, second := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running}), l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running})
	other := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags(infraID, "worker-0")}) // the infraID marks it, and it is not selected
	a, ref := l.selectInstances(t, first, second), ref(t, infraID)
	if err := a.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	l.ec2.AdvanceStates()
	ms, err := a.Observe(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if len(ms) != 2 || !ms.AllIn(cloud.Stopped) || ms[0].ProviderID != "aws:///us-east-1a/"+first || !ms[0].ControlPlane || ms[1].ControlPlane {
		t.Errorf("got %+v", ms)
	}
	if got := l.observe(t, ref); len(got) != 1 || got[0].State != cloud.Running || !strings.Contains(got[0].Name, other) {
		t.Errorf("the instance that is not selected: %v", got)
	}
	if err := a.Start(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	l.ec2.AdvanceStates()
	if ms, err = a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
		t.Errorf("after the start: %v, %v", ms, err)
	}
}

// A spot instance that is terminated would be another Machine afterwards.
func TestSelectedSpotInstancesAreNotTerminated(t *testing.T) {
	l := newLab(t)
	id := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Spot: true})
	a, ref := l.selectInstances(t, id), ref(t, infraID)
	if err := a.Stop(t.Context(), ref); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("the stop of a one-time spot instance: %v", err)
	}
	if ms, err := a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
		t.Errorf("got %v, %v", ms, err)
	}
}

func TestSelectedInstancesThatDoNotExistAreLeftOut(t *testing.T) {
	l := newLab(t)
	id := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running})
	ms, err := l.selectInstances(t, id, "i-0000000000000dead").Observe(t.Context(), ref(t, infraID))
	if err != nil || len(ms) != 1 || ms[0].ProviderID != "aws:///us-east-1a/"+id {
		t.Errorf("got %v, %v", ms, err)
	}
}

func TestProviderIDsOfOtherCloudsAreDenied(t *testing.T) {
	_, err := newLab(t).ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: "gce://p/z/n"}})
	want := `machine md-0 has the provider ID "gce://p/z/n", which is not that of an EC2 instance, such as aws:///us-east-1a/i-0123`
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}
