package instance

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

var (
	histories   = flag.Uint64("instance.histories", 3000, "how many random histories to try")
	historySeed = flag.Uint64("instance.seed", 0, "seed of the first one, the next has the next")
)

// cluster is a data plane in a history: its contents, its agent's list and report, and what the hub
// knows of them.
type cluster struct {
	name                 string
	exists, over, silent bool
	room                 bool
	// lies is set when its agent reports random values, lied when it ever has.
	lies, lied bool
	// lists is what the hub lists, told what the agent has read of it.
	lists, told *entry
	// has is the placement that the cluster has something of; "" when it has nothing.
	has string
	// usable is set when the instance there can be used.
	usable bool
	report *v1alpha1.InstanceReport
}

type entry struct {
	placement string
	deleted   bool
}

// history is one instance, and everything that it interacts with.
type history struct {
	rng      *rand.Rand
	now      time.Time
	instance *v1alpha1.ServiceInstance
	region   bool
	clusters []*cluster
	// relist is set when the hub first deletes what it no longer lists.
	relist bool
	// orderable is set when the InstanceType and the size of the instance exist.
	orderable bool
	// forced is set when the instance's finalizer was removed by hand.
	forced bool
	log    []string
}

func newHistory(seed uint64) *history {
	rng := rand.New(rand.NewPCG(seed, 7))
	h := &history{rng: rng, now: noon, instance: newInstance(free), region: true, relist: rng.IntN(2) == 0, orderable: rng.IntN(4) > 0}
	for n := range 3 {
		h.clusters = append(h.clusters, &cluster{name: fmt.Sprintf("p%d", n), exists: true, room: rng.IntN(3) > 0})
	}
	return h
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// placement returns the instance's placement on a cluster; "" when it has none there.
func (h *history) placement(c *cluster) string {
	if h.instance == nil || h.instance.Status.DataPlaneName != c.name {
		return ""
	}
	return h.instance.PlacementID()
}

// place does what package fleetregion does.
func (h *history) place(c *cluster) {
	i := h.instance
	switch {
	case i == nil, !h.region, len(i.Finalizers) == 0, i.DeletionTimestamp != nil, i.Status.DataPlaneName != "":
		return
	case !h.orderable:
		h.wait(scaling.UnknownSize, "InstanceType standard has no size \"x1\".")
		return
	case !c.exists, c.over, c.silent:
		h.wait(scaling.NoCapacity, "No data plane has room.")
		return
	}
	for _, r := range i.Status.Refusals {
		if r.DataPlaneName == c.name && h.now.Before(r.Until.Time) {
			return
		}
	}
	i.Status.DataPlaneName, i.Status.Phase = c.name, v1alpha1.InstanceProvisioning
	i.Status.Placements++
	h.note("placed on %s", c.name)
}

// wait reports why the instance has no data plane, as package fleetregion does.
func (h *history) wait(reason scaling.Reason, words string) {
	h.instance.Status.Phase = v1alpha1.InstancePending
	meta.SetStatusCondition(&h.instance.Status.Conditions, metav1.Condition{
		Type: v1alpha1.InstancePlaced, Status: metav1.ConditionFalse, Reason: string(reason), Message: words, LastTransitionTime: metav1.NewTime(h.now),
	})
}

// list does what package dataplane does.
func (h *history) list(c *cluster) {
	p := h.placement(c)
	switch {
	case !c.exists || c.over:
	case p != "":
		c.lists = &entry{p, h.instance.DeletionTimestamp != nil}
	case c.lists != nil && h.relist && h.instance != nil:
		gone := c.report != nil && c.report.Phase == v1alpha1.AgentDeleted && c.report.PlacementID == c.lists.placement
		if c.lists = (&entry{c.lists.placement, true}); gone {
			c.lists = nil
		}
	default:
		c.lists = nil
	}
}

// work does what the agent does: it reads, acts and reports, each at a different time.
func (h *history) work(c *cluster) {
	if c.silent || !c.exists || c.over {
		return
	}
	switch h.rng.IntN(3) {
	case 0:
		c.told = c.lists
	case 1:
		c.act()
	default:
		c.tell(h)
	}
}

func (c *cluster) act() {
	switch {
	case c.told == nil:
	case c.told.deleted, c.has != "" && c.has != c.told.placement:
		c.has, c.usable = "", false
	case c.has != "":
		c.usable = true
	case c.room:
		c.has = c.told.placement
	}
}

func (c *cluster) tell(h *history) {
	var r *v1alpha1.InstanceReport
	switch {
	case c.told == nil && c.has != "":
		r = &v1alpha1.InstanceReport{PlacementID: c.has, Phase: v1alpha1.AgentUnlisted}
	case c.told == nil:
	default:
		r = &v1alpha1.InstanceReport{PlacementID: c.told.placement}
		switch {
		case c.told.deleted && c.has != "":
			r.Phase = v1alpha1.AgentDeleting
		case c.told.deleted:
			r.Phase = v1alpha1.AgentDeleted
		case c.has == c.told.placement && c.usable:
			r.Phase = v1alpha1.AgentReady
		case c.has == "" && !c.room:
			r.Phase = v1alpha1.AgentRejected
		default:
			r.Phase = v1alpha1.AgentProvisioning
		}
	}
	if c.lies && c.told != nil {
		phases := []v1alpha1.AgentPhase{v1alpha1.AgentReady, v1alpha1.AgentProvisioning, v1alpha1.AgentFailed, v1alpha1.AgentRejected, v1alpha1.AgentDeleting, v1alpha1.AgentDeleted, v1alpha1.AgentUnlisted, "Odd"}
		r = &v1alpha1.InstanceReport{PlacementID: c.told.placement, Phase: phases[h.rng.IntN(len(phases))], Reason: "no word", Message: strings.Repeat("ü", h.rng.IntN(8))}
		c.lied = true
	}
	if r != nil {
		r.UID = "u"
		h.note("%s says %s of %s", c.name, r.Phase, r.PlacementID)
	}
	c.report = r
}

// agent returns the hub's view of a cluster.
func (c *cluster) agent() *v1alpha1.DataPlaneAgent {
	a := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
	if c.lists != nil {
		a.Spec.Instances = []v1alpha1.AgentInstance{{UID: "u"}}
	}
	if c.report != nil {
		a.Status.Report = &v1alpha1.DataPlaneReport{Instances: []v1alpha1.InstanceReport{*c.report}}
	}
	return a
}

func (h *history) snapshot(i *v1alpha1.ServiceInstance) Snapshot {
	s := Snapshot{Instance: i, Now: h.now, HasRegion: h.region}
	for _, c := range h.clusters {
		switch {
		case !c.exists:
		case c.name == h.instance.Status.DataPlaneName:
			p := Plane{Namespace: "fleet", Name: c.name, InRegionNamespace: h.region, PlaneState: PlaneState{Released: c.over, AgentSilent: c.silent}}
			if c.report != nil && c.report.PlacementID == h.instance.PlacementID() {
				p.Report = c.report
			}
			s.Planes = append(s.Planes, p)
		case !c.over && HasTrace(c.agent(), "u") && h.instance.DeletionTimestamp != nil:
			s.Traces = append(s.Traces, c.name)
		}
	}
	return s
}

// pass runs one pass of the controller. It returns an error if the pass removes the finalizer while
// something of the instance exists or may still be created, or withdraws its data plane after it
// has been in use.
func (h *history) pass() error {
	i := h.instance
	if i == nil {
		return nil
	}
	d := Decide(h.snapshot(i))
	h.note("pass: %s", words(d))
	switch {
	case d.Finalizer == AddFinalizer:
		i.Finalizers = []string{v1alpha1.FinalizerServiceInstance}
		return nil
	case d.Finalizer == RemoveFinalizer:
		h.instance = nil
		for _, c := range h.clusters {
			if c.exists && !c.over && !c.lied && (c.has != "" || c.told != nil && !c.told.deleted) {
				return fmt.Errorf("the instance is let go, and %s has %q of it and was told %+v", c.name, c.has, c.told)
			}
		}
		return nil
	case i.Status.Phase == v1alpha1.InstanceReady && d.Status.DataPlaneName == "" && !h.lied():
		return fmt.Errorf("an instance in use loses its data plane: %s", words(d))
	case len(d.Status.Refusals) > maxRefusals:
		return fmt.Errorf("%d refusals", len(d.Status.Refusals))
	}
	i.Status = d.Status
	if i.DeletionTimestamp != nil && len(i.Finalizers) == 0 {
		h.instance = nil
	}
	return nil
}

// happen runs a random event.
func (h *history) happen() error {
	c := h.clusters[h.rng.IntN(len(h.clusters))]
	switch n := h.rng.IntN(100); {
	case n < 25:
		return h.pass()
	case n < 55:
		h.work(c)
	case n < 70:
		h.list(c)
	case n < 80:
		h.place(c)
	case n < 86:
		c.room = !c.room
	case n < 90:
		c.silent = !c.silent
	case n < 92:
		h.region = !h.region
	case n < 95:
		h.now = h.now.Add(time.Duration(h.rng.IntN(8)) * time.Minute)
	case n < 96 && h.rng.IntN(3) == 0:
		h.orderable = !h.orderable
		h.note("orderable: %t", h.orderable)
	case n < 96 && h.rng.IntN(4) == 0:
		c.lies = !c.lies
		h.note("%s lies: %t", c.name, c.lies)
	case n < 96 && h.instance != nil && h.instance.DeletionTimestamp != nil && h.rng.IntN(8) == 0:
		h.instance, h.forced = nil, true
		h.note("its finalizer is removed by hand")
	case n < 96 && h.instance != nil && h.instance.DeletionTimestamp == nil:
		if home := h.home(); home != nil && h.rng.IntN(4) == 0 {
			home.silent = true
		}
		h.instance.DeletionTimestamp = ptr.To(metav1.NewTime(h.now))
		h.note("deleted")
	case n < 97 && !c.over && h.rng.IntN(4) == 0: // somebody deletes the DataPlane
		c.over, c.lists, c.report = true, nil, nil
		h.note("%s is given back", c.name)
	case n < 98 && c.over:
		c.exists = false
		h.note("%s is gone", c.name)
	}
	return nil
}

// home returns the cluster that the instance is on; nil when it is on none.
func (h *history) home() *cluster {
	for _, c := range h.clusters {
		if h.placement(c) != "" {
			return c
		}
	}
	return nil
}

func (h *history) lied() bool {
	return slices.ContainsFunc(h.clusters, func(c *cluster) bool { return c.lied })
}

// leaveAlone lets time pass while nobody fixes anything: what is silent stays silent, and missing
// objects stay missing. The instance settles, and reports what it waits for.
func (h *history) leaveAlone() error {
	for _, c := range h.clusters {
		c.lies = false
	}
	for range 40 {
		h.now = h.now.Add(time.Minute)
		for _, c := range h.clusters {
			h.list(c)
			for range 3 {
				h.work(c)
			}
			h.place(c)
			if err := h.pass(); err != nil {
				return err
			}
		}
		if h.instance == nil {
			return nil
		}
	}
	return h.checkNamed()
}

// checkNamed checks that an instance that is not Ready reports why.
func (h *history) checkNamed() error {
	st, going := h.instance.Status, h.instance.DeletionTimestamp != nil
	if len(h.instance.Finalizers) == 0 || st.Phase == v1alpha1.InstanceReady && !going {
		return nil
	}
	ready, placed := meta.FindStatusCondition(st.Conditions, v1alpha1.InstanceIsReady), meta.FindStatusCondition(st.Conditions, v1alpha1.InstancePlaced)
	switch {
	case st.DataPlaneName == "" && !going:
		if placed == nil || placed.Status != metav1.ConditionFalse || placed.Message == "" {
			return fmt.Errorf("left alone, it has no data plane and says %+v", placed)
		}
	case ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "":
		return fmt.Errorf("left alone, it is %s and says %+v", st.Phase, ready)
	case going && !strings.Contains(strings.ToLower(ready.Message), "data plane"):
		return fmt.Errorf("left alone, it is deleted, and does not say what keeps it: %+v", ready)
	}
	return nil
}

// rest runs without random events: every agent reports, and nobody does anything.
func (h *history) rest() error {
	h.region, h.orderable = true, true
	for range 200 {
		h.now = h.now.Add(time.Minute)
		for _, c := range h.clusters {
			c.silent, c.room, c.lies = false, true, false
			h.list(c)
			h.work(c)
			h.place(c)
			if err := h.pass(); err != nil {
				return err
			}
		}
	}
	i := h.instance
	left := 0
	for _, c := range h.clusters {
		if c.exists && !c.over && c.has != "" && c.has != h.placement(c) {
			left++
		}
	}
	if err := h.checkLeft(); err != nil && (h.forced || h.lied()) {
		return err
	}
	switch {
	case left > 0 && h.relist && !h.forced && !h.lied():
		return fmt.Errorf("%d data planes have something that is not wanted", left)
	case i == nil:
		return nil
	case i.DeletionTimestamp != nil && left == 0:
		return fmt.Errorf("it is deleted, and stays: %+v", i.Status)
	case i.DeletionTimestamp != nil, i.Status.Phase == v1alpha1.InstanceReady:
		return nil
	case i.Status.Phase == v1alpha1.InstanceFailed && strings.Contains(words(Decide(h.snapshot(i))), v1alpha1.ReasonDataPlaneGone):
		return nil
	case i.Status.Phase == v1alpha1.InstancePending && h.full():
		return nil
	}
	return fmt.Errorf("it comes to no end: %+v", i.Status)
}

// checkLeft checks that the remains of an instance that the hub has lost are reported.
func (h *history) checkLeft() error {
	for _, c := range h.clusters {
		if c.exists && !c.over && c.has != "" && c.has != h.placement(c) && (c.report == nil || c.report.Phase != v1alpha1.AgentUnlisted) {
			return fmt.Errorf("%s has %s, of which the hub knows nothing, and says %+v", c.name, c.has, c.report)
		}
	}
	return nil
}

// full reports whether no data plane is left.
func (h *history) full() bool {
	for _, c := range h.clusters {
		if c.exists && !c.over {
			return false
		}
	}
	return true
}

func TestHistories(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := *historySeed; seed < *historySeed+*histories; seed++ {
		h := newHistory(seed)
		var err error
		for n := 0; n < 150 && err == nil; n++ {
			err = h.happen()
		}
		if err == nil && seed%2 == 0 {
			err = h.leaveAlone()
		}
		if err == nil {
			err = h.rest()
		}
		if err != nil {
			t.Fatalf("seed %d, relist %t: %v\n%s", seed, h.relist, err, strings.Join(h.log, "\n"))
		}
		end := "gone"
		if h.instance != nil {
			end = string(h.instance.Status.Phase)
		}
		ends[end]++
	}
	t.Log(ends)
	for _, end := range []string{"gone", "Ready", "Failed"} {
		if ends[end] < 20 {
			t.Errorf("few histories end so: %s: %d", end, ends[end])
		}
	}
}
