package instance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newInstance returns an instance with the finalizer and without a data plane.
func newInstance(edit ...func(*v1alpha1.ServiceInstance)) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "k", UID: "u", Generation: 3, Finalizers: []string{v1alpha1.FinalizerServiceInstance},
	}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "standard", Size: "x1", Provider: "aws", Region: "us-east-1"}
	for _, e := range edit {
		e(i)
	}
	return i
}

// on puts it on a data plane, in a phase.
func on(plane string, phase v1alpha1.InstancePhase) func(*v1alpha1.ServiceInstance) {
	return func(i *v1alpha1.ServiceInstance) {
		i.Status.DataPlaneName, i.Status.Phase, i.Status.Placements, i.Status.Units = plane, phase, 1, 1
	}
}

func free(i *v1alpha1.ServiceInstance) { i.Finalizers = nil }

func doomed(i *v1alpha1.ServiceInstance) { i.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func reaches(i *v1alpha1.ServiceInstance) {
	i.Status.Versions.Kafka = "3.9.0"
}

// says returns data plane p of the region whose agent reports that phase of the instance.
func says(phase v1alpha1.AgentPhase, words ...string) Plane {
	p := Plane{Namespace: "fleet", Name: "p", InRegionNamespace: true}
	if phase != "" {
		p.Report = &v1alpha1.InstanceReport{UID: "u", Phase: phase, Message: strings.Join(words, " ")}
	}
	return p
}

func with(p Plane, edit func(*Plane)) []Plane {
	edit(&p)
	return []Plane{p}
}

// words returns a short form of a plan: the change of the finalizer, or phase and Ready, and Placed
// if it was changed.
func words(d Plan) string {
	if d.Finalizer != "" {
		return string(d.Finalizer)
	}
	out := string(d.Status.Phase)
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.InstanceIsReady); c != nil {
		out += fmt.Sprintf(" Ready=%s/%s", c.Status, c.Reason)
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.InstancePlaced); c != nil {
		out += fmt.Sprintf(" Placed=%s/%s", c.Status, c.Reason)
	}
	if d.Status.DataPlaneName != "" {
		out += " on " + d.Status.DataPlaneName
	}
	for _, r := range d.Status.Refusals {
		out += " not " + r.DataPlaneName
	}
	return out
}

func TestDecide(t *testing.T) {
	pending, ready := on("p", v1alpha1.InstanceProvisioning), on("p", v1alpha1.InstanceReady)
	is := newInstance
	silent := func(p *Plane) { p.AgentSilent = true }
	for name, tc := range map[string]struct {
		instance *v1alpha1.ServiceInstance
		planes   []Plane
		want     string
	}{
		"a new one is held before anything else":                    {is(free), nil, "add finalizer"},
		"one without a place is left to its region":                 {is(), nil, ""},
		"one that is placed is being made":                          {is(pending), []Plane{says("")}, "Provisioning Ready=False/Provisioning on p"},
		"one that is being made":                                    {is(pending), []Plane{says(v1alpha1.AgentProvisioning)}, "Provisioning Ready=False/Provisioning on p"},
		"one that can be used":                                      {is(pending), []Plane{says(v1alpha1.AgentReady)}, "Ready Ready=True/Ready on p"},
		"one that cannot be made":                                   {is(pending), []Plane{says(v1alpha1.AgentFailed)}, "Failed Ready=False/Failed on p"},
		"one that failed and recovers":                              {is(on("p", v1alpha1.InstanceFailed)), []Plane{says(v1alpha1.AgentReady)}, "Ready Ready=True/Ready on p"},
		"one that is not told of any more keeps its phase":          {is(ready), []Plane{says("")}, "Ready Ready=Unknown/NotReported on p"},
		"one that is told of as not listed keeps its phase":         {is(ready), []Plane{says(v1alpha1.AgentUnlisted)}, "Ready Ready=Unknown/NotReported on p"},
		"a phase that nobody knows changes none":                    {is(ready), []Plane{says("Dancing")}, "Ready Ready=Unknown/NotReported on p"},
		"one that was taken away and should not have been":          {is(ready), []Plane{says(v1alpha1.AgentDeleted)}, "Failed Ready=False/TakenAway on p"},
		"a silent agent: it keeps its phase":                        {is(ready), with(says(v1alpha1.AgentReady), silent), "Ready Ready=Unknown/AgentSilent on p"},
		"a silent agent that has told of it first":                  {is(pending), with(says(v1alpha1.AgentFailed), silent), "Failed Ready=Unknown/AgentSilent on p"},
		"a data plane that does not answer its agent":               {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.APISilent = true }), "Ready Ready=Unknown/DataPlaneSilent on p"},
		"a data plane that cannot be read":                          {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.Unreadable = "x" }), "Ready Ready=Unknown/Unreadable on p"},
		"a data plane that is gone: it is not placed anew":          {is(ready), nil, "Failed Ready=False/DataPlaneGone on p"},
		"a data plane that is given back":                           {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.Released = true }), "Failed Ready=False/DataPlaneGone on p"},
		"a data plane whose cluster is gone":                        {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.ClusterGone, p.AgentSilent = true, true }), "Failed Ready=False/DataPlaneGone on p"},
		"a data plane whose cluster was deleted":                    {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.ClusterDeleting = true }), "Ready Ready=Unknown/ClusterDeleting on p"},
		"deleted, and the cluster is gone with it":                  {is(ready, doomed), with(says(v1alpha1.AgentReady), func(p *Plane) { p.ClusterGone, p.AgentSilent = true, true }), "remove finalizer"},
		"a data plane whose region is elsewhere now":                {is(ready), with(says(v1alpha1.AgentReady), func(p *Plane) { p.InRegionNamespace = false }), "Ready Ready=Unknown/NoRegion on p"},
		"one that is refused is free again, in the same write":      {is(pending), []Plane{says(v1alpha1.AgentRejected, "no room")}, "Pending Ready=False/NotPlaced Placed=False/Refused not p"},
		"one that has been in use is not placed elsewhere":          {is(ready), []Plane{says(v1alpha1.AgentRejected)}, "Failed Ready=False/Rejected on p"},
		"nor one that had versions once":                            {is(pending, reaches), []Plane{says(v1alpha1.AgentRejected)}, "Failed Ready=False/Rejected on p"},
		"never placed and deleted: it goes":                         {is(doomed), nil, "remove finalizer"},
		"deleted, and not ours any more":                            {is(doomed, free), nil, ""},
		"deleted: its data plane takes it away":                     {is(ready, doomed), []Plane{says(v1alpha1.AgentReady)}, "Deleting Ready=False/Deleting on p"},
		"deleted, and its data plane has not heard of it":           {is(pending, doomed), []Plane{says("")}, "Deleting Ready=False/Deleting on p"},
		"deleted, and refused: the data plane has to say so":        {is(pending, doomed), []Plane{says(v1alpha1.AgentRejected)}, "Deleting Ready=False/Deleting on p"},
		"deleted, and not listed: the data plane has it":            {is(ready, doomed), []Plane{says(v1alpha1.AgentUnlisted)}, "Deleting Ready=False/Deleting on p"},
		"deleted, and nothing is left":                              {is(ready, doomed), []Plane{says(v1alpha1.AgentDeleted)}, "remove finalizer"},
		"deleted, nothing is left, and the agent is silent by now":  {is(ready, doomed), with(says(v1alpha1.AgentDeleted), silent), "remove finalizer"},
		"deleted, and the agent is silent":                          {is(ready, doomed), with(says(v1alpha1.AgentReady), silent), "Deleting Ready=False/AgentSilent on p"},
		"deleted, and the data plane does not answer":               {is(ready, doomed), with(says(v1alpha1.AgentReady), func(p *Plane) { p.APISilent = true }), "Deleting Ready=False/DataPlaneSilent on p"},
		"deleted, and the data plane cannot be read":                {is(ready, doomed), with(says(v1alpha1.AgentDeleted), func(p *Plane) { p.Unreadable = "x" }), "Deleting Ready=False/Unreadable on p"},
		"deleted, and the data plane is gone":                       {is(ready, doomed), nil, "remove finalizer"},
		"deleted, and the cluster is given back":                    {is(ready, doomed), with(says(v1alpha1.AgentReady), func(p *Plane) { p.Released = true }), "remove finalizer"},
		"deleted, and the region is gone: the data plane is not":    {is(ready, doomed), with(says(v1alpha1.AgentReady), func(p *Plane) { p.InRegionNamespace = false }), "Deleting Ready=False/NoRegion on p"},
		"deleted, the region is gone, and the data plane knows it":  {is(ready, doomed), with(says(v1alpha1.AgentDeleted), func(p *Plane) { p.InRegionNamespace = false }), "remove finalizer"},
		"deleted, and two data planes of the name may have it":      {is(ready, doomed), []Plane{says(v1alpha1.AgentDeleted), says(v1alpha1.AgentReady)}, "Deleting Ready=False/Deleting on p"},
		"a reason that conditions cannot have is replaced by ours":  {is(pending), with(says(v1alpha1.AgentFailed), func(p *Plane) { p.Report.Reason = "no way!" }), "Failed Ready=False/Failed on p"},
		"a reason of the operator's is kept":                        {is(pending), with(says(v1alpha1.AgentFailed), func(p *Plane) { p.Report.Reason = "Broken" }), "Failed Ready=False/Broken on p"},
		"a reason that is too long is replaced, too":                {is(pending), with(says(v1alpha1.AgentFailed), func(p *Plane) { p.Report.Reason = strings.Repeat("a", 200) }), "Failed Ready=False/Failed on p"},
		"one whose region is not heard of keeps what it has, if so": {is(ready), with(says(""), silent), "Ready Ready=Unknown/AgentSilent on p"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(Decide(Snapshot{Instance: tc.instance, Now: noon, HasRegion: true, Planes: tc.planes})); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestOneWithoutARegionIsTold(t *testing.T) {
	d := Decide(Snapshot{Instance: newInstance(), Now: noon})
	if got := words(d); got != "Pending Placed=False/NoRegion" {
		t.Errorf("got %q", got)
	}
	if c := d.Status.Conditions[0]; !strings.Contains(c.Message, "provider aws and region us-east-1") || c.ObservedGeneration != 3 {
		t.Errorf("it says %+v", c)
	}
}

// The finalizer waits for the remains of an earlier placement, although the instance has no data
// plane.
func TestTracesHoldADeletedInstance(t *testing.T) {
	d := Decide(Snapshot{Instance: newInstance(doomed), Now: noon, HasRegion: true, Traces: []string{"fleet/old"}})
	if got := words(d); got != "Deleting Ready=False/Deleting" {
		t.Errorf("got %q", got)
	}
	if c := d.Status.Conditions[0]; !strings.Contains(c.Message, "fleet/old") {
		t.Errorf("it says %q", c.Message)
	}
}

func refusal(plane string, until time.Duration) v1alpha1.Refusal {
	return v1alpha1.Refusal{DataPlaneName: plane, Until: metav1.NewTime(noon.Add(until))}
}

func TestARefusalIsRemembered(t *testing.T) {
	i := newInstance(on("p", v1alpha1.InstanceProvisioning))
	before := refusal("p", -time.Minute)
	before.RemainingUnits, before.Versions = 4, "s1"
	i.Status.Refusals = []v1alpha1.Refusal{before, refusal("over", 0), refusal("q", time.Minute)}
	for name, tt := range map[string]struct {
		now  v1alpha1.Refusal
		want int32
	}{
		"with what it had left":            {v1alpha1.Refusal{RemainingUnits: 5, Versions: "s1"}, 5},
		"… or had when it refused before":  {v1alpha1.Refusal{RemainingUnits: 3, Versions: "s1"}, 4},
		"… unless it has another operator": {v1alpha1.Refusal{RemainingUnits: 3, Versions: "s2"}, 3},
	} {
		p := says(v1alpha1.AgentRejected, "It takes 2 units, and 1 is left.")
		p.Refusal = tt.now
		d := Decide(Snapshot{Instance: i, Now: noon, HasRegion: true, Planes: []Plane{p}})
		if got := words(d); got != "Pending Ready=False/NotPlaced Placed=False/Refused not over not q not p" {
			t.Errorf("%s: got %q", name, got)
		}
		last := d.Status.Refusals[2]
		if !last.Until.Time.Equal(noon.Add(10*time.Minute)) || last.Message != "It takes 2 units, and 1 is left." || last.RemainingUnits != tt.want {
			t.Errorf("%s: it is %+v", name, last)
		}
	}
}

func TestRefusalsAreDroppedWhenTheyDoNotMatterAnyMore(t *testing.T) {
	i := newInstance(on("p", v1alpha1.InstanceProvisioning))
	i.Status.Refusals = []v1alpha1.Refusal{refusal("q", 0), refusal("r", -time.Hour)}
	i.Status.Refusals[0].Generation = i.Generation - 1
	if got := words(Decide(Snapshot{Instance: i, Now: noon, HasRegion: true, Planes: []Plane{says(v1alpha1.AgentProvisioning)}})); !strings.HasSuffix(got, "on p not r") {
		t.Errorf("of another specification: %q", got)
	}
	if got := words(Decide(Snapshot{Instance: i, Now: noon, HasRegion: true, Planes: []Plane{says(v1alpha1.AgentReady)}})); !strings.HasSuffix(got, "on p") {
		t.Errorf("of one that can be used: %q", got)
	}
}

func TestTheRefusalThatEndsFirstMakesRoomForAnother(t *testing.T) {
	i := newInstance(on("p", v1alpha1.InstanceProvisioning))
	for n := range maxRefusals {
		i.Status.Refusals = append(i.Status.Refusals, refusal(fmt.Sprintf("q%d", n), time.Duration(n+1)*time.Second))
	}
	d := Decide(Snapshot{Instance: i, Now: noon, HasRegion: true, Planes: []Plane{says(v1alpha1.AgentRejected)}})
	got := words(d)
	if len(d.Status.Refusals) != maxRefusals || strings.Contains(got, "not q0 ") || !strings.Contains(got, "not q1 ") && !strings.HasSuffix(got, "not q1") || !strings.Contains(got, "not p") {
		t.Errorf("%d: %s", len(d.Status.Refusals), got)
	}
}

func TestWhatADataPlaneTellsIsCopied(t *testing.T) {
	p := says(v1alpha1.AgentReady, strings.Repeat("é", 1000))
	p.Report.Versions = v1alpha1.InstanceVersions{Kafka: "3.9.0"}
	p.Report.Routes = make([]v1alpha1.InstanceRoute, 100)
	d := Decide(Snapshot{Instance: newInstance(on("p", v1alpha1.InstanceProvisioning)), Now: noon, HasRegion: true, Planes: []Plane{p}})
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.InstanceIsReady)
	if d.Status.Versions.Kafka != "3.9.0" || len(d.Status.Routes) != maxRoutes || len(c.Message) > maxMessage+3 || d.Status.ObservedGeneration != 3 {
		t.Errorf("it is %+v", d.Status)
	}
	i := newInstance()
	i.Status = d.Status
	d = Decide(Snapshot{Instance: i, Now: noon, HasRegion: true, Planes: []Plane{says(v1alpha1.AgentProvisioning)}})
	if d.Status.Versions.Kafka != "3.9.0" || len(d.Status.Routes) != maxRoutes {
		t.Errorf("what was known is lost: %+v", d.Status)
	}
}

func TestNothingIsWrittenTwice(t *testing.T) {
	i := newInstance(on("p", v1alpha1.InstanceProvisioning))
	s := Snapshot{Now: noon, Instance: i, HasRegion: true, Planes: []Plane{says(v1alpha1.AgentReady)}}
	i.Status = Decide(s).Status
	s.Now = noon.Add(time.Hour)
	if got := Decide(s).Status; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", i.Status) {
		t.Errorf("it was %+v, and is %+v", i.Status, got)
	}
}
