package facts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// A report is a list of "uid:Phase", instances are a list of UIDs.
func TestWhatIsOnADataPlane(t *testing.T) {
	for name, tt := range map[string]struct {
		report, on, moved string
		used              int32
		edit              func(*v1alpha1.DataPlaneAgent)
		want              string
	}{
		"nothing":                              {want: "True AllListed; answered"},
		"an instance that is known":            {report: "a:Ready", on: "a", used: 1, want: "True AllListed; answered"},
		"an instance that nobody has listed":   {report: "a:Unlisted", used: 1, want: "False UnlistedInstances a; answered"},
		"one that the hub has lost since":      {report: "b:Ready a:Provisioning", used: 2, want: "False UnlistedInstances a b; answered"},
		"one that was placed elsewhere":        {report: "a:Deleting", moved: "a", used: 1, want: "True AllListed; answered"},
		"one that is being taken away":         {report: "a:Deleting", want: "True AllListed; answered"},
		"one that is gone":                     {report: "a:Deleted", want: "True AllListed; answered"},
		"one that was refused":                 {report: "a:Rejected", moved: "a", want: "True AllListed; answered"},
		"used units that nobody knows of":      {used: 2, want: "False UnlistedInstances; answered"},
		"more used units than known ones take": {report: "a:Ready", on: "a", used: 2, want: "False UnlistedInstances; answered"},
		"a known one that it has not made yet": {on: "a", want: "True AllListed; answered"},
		"no report":                            {edit: func(a *v1alpha1.DataPlaneAgent) { a.Status.Report = nil }, want: "Unknown ContentsUnknown"},
		"a report of another data plane":       {edit: func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.DataPlaneUID = "x" }, want: "Unknown ContentsUnknown"},
		"the agent of another data plane":      {edit: func(a *v1alpha1.DataPlaneAgent) { a.Spec.DataPlaneUID = "x" }, want: "Unknown ContentsUnknown"},
		"an agent that cannot look": {edit: func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Ready, a.Status.Report.Reason = false, "DataPlaneSilent"
		}, want: "Unknown ContentsUnknown"},
		"an agent without an operator can":       {edit: func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Ready, a.Status.Report.Reason = false, "NoOperator" }, want: "True AllListed; answered"},
		"a report that is not believed":          {edit: func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Capacity = nil }, want: "Unknown ContentsUnknown"},
		"… which names an instance all the same": {report: "a:Unlisted", edit: func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Capacity = nil }, want: "False UnlistedInstances a"},
		"a report from before the inquiry":       {edit: func(a *v1alpha1.DataPlaneAgent) { a.Generation = 3 }, want: "True AllListed"},
		"no inquiry":                             {edit: func(a *v1alpha1.DataPlaneAgent) { a.Spec.InquiryAt = nil }, want: "True AllListed"},
		"a UID that no field holds":              {report: strings.Repeat("x", 99) + ":Unlisted", want: "False UnlistedInstances " + strings.Repeat("x", 63) + "; answered"},
	} {
		t.Run(name, func(t *testing.T) {
			dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
			dp.Spec.InstanceTypes = []string{"std"}
			at := metav1.NewTime(time.Unix(100, 0))
			a := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			a.Spec.DataPlaneUID, a.Spec.InquiryAt = "u", &at
			a.Status.Report = &v1alpha1.DataPlaneReport{
				At: at, DataPlaneUID: "u", Ready: true, ObservedGeneration: 2,
				Capacity: map[string]v1alpha1.ReportedCapacity{"std": {MaxUnits: 9, RemainingUnits: 9 - tt.used}},
			}
			for word := range strings.FieldsSeq(tt.report) {
				uid, phase, _ := strings.Cut(word, ":")
				a.Status.Report.Instances = append(a.Status.Report.Instances, v1alpha1.InstanceReport{UID: uid, Phase: v1alpha1.AgentPhase(phase)})
			}
			if tt.edit != nil {
				tt.edit(a)
			}
			c := facts.CompareContents(dp, a, instances(tt.on), instances(tt.moved))
			cond := facts.InstancesListedCondition(dp, c)
			got := fmt.Sprintf("%s %s", cond.Status, cond.Reason)
			for _, u := range c.Unlisted {
				got += " " + u.UID
			}
			if c.AnsweredAt != nil {
				got += "; answered"
			}
			if got != tt.want {
				t.Errorf("got %s, want %s: %s", got, tt.want, cond.Message)
			}
			if keeps := facts.OccupiedReason(dp, c, true, at.Time) != ""; keeps == (tt.want == "True AllListed; answered") {
				t.Errorf("its cluster is kept: %t", keeps)
			}
			if facts.OccupiedReason(dp, c, false, at.Time) == "" || facts.OccupiedReason(dp, c, true, at.Add(time.Second)) == "" {
				t.Error("a silent agent, or an old answer, lets its cluster go")
			}
			dp.Spec.DiscardUnlisted = true
			if why := facts.OccupiedReason(dp, c, false, at.Add(time.Second)); why != "" {
				t.Errorf("a person has given up what is there, and it is kept: %s", why)
			}
		})
	}
}

func instances(uids string) []*v1alpha1.ServiceInstance {
	var out []*v1alpha1.ServiceInstance
	for uid := range strings.FieldsSeq(uids) {
		i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
		i.Spec.Type, i.Status.Units = "std", 1
		out = append(out, i)
	}
	return out
}

func TestUnitsThatAReportCounts(t *testing.T) {
	r := &v1alpha1.DataPlaneReport{Capacity: map[string]v1alpha1.ReportedCapacity{"std": {MaxUnits: 9, RemainingUnits: 3}}}
	for _, e := range []struct {
		uid, reason string
		phase       v1alpha1.AgentPhase
	}{{"a", "", v1alpha1.AgentReady}, {"b", "NoRoom", v1alpha1.AgentRejected}, {"c", "Rejected", v1alpha1.AgentRejected}, {"d", "", v1alpha1.AgentDeleted}, {"x", "", v1alpha1.AgentUnlisted}} {
		r.Instances = append(r.Instances, v1alpha1.InstanceReport{UID: e.uid, Reason: e.reason, Phase: e.phase})
	}
	on := instances("a b c d new")
	if got := facts.CountKnownUnits(r, "std", on); got != 2 { // a and c
		t.Errorf("%d units are counted", got)
	}
	for uid, want := range map[string]string{"b": "3 false", "c": "4 false"} {
		i := instances(uid)[0]
		if got := facts.BuildRefusal("p", r, i); fmt.Sprint(got.RemainingUnits, " ", got.Vacant) != want {
			t.Errorf("%s: %+v", uid, got)
		}
	}
	r.Instances = r.Instances[1:2]
	if got := facts.BuildRefusal("p", r, instances("b")[0]); !got.Vacant {
		t.Errorf("nothing else is on it: %+v", got)
	}
	r.Instances[0].Reason = v1alpha1.ReasonNoPool
	if got := facts.BuildRefusal("p", r, instances("b")[0]); got.Vacant {
		t.Errorf("another may have nodes for it: %+v", got)
	}
}
