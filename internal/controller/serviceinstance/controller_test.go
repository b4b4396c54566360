package serviceinstance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/patch"
)

func TestWhoIsBelieved(t *testing.T) {
	placed := func() *v1alpha1.ServiceInstance { return newInstance(on("p", v1alpha1.InstanceProvisioning)) }
	other := newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady))
	other.Status.Report.DataPlaneUID = "other"
	reserved := report("u-1", v1alpha1.AgentReady)
	reserved.Reserved = true
	elsewhere := newPlane("fleet", "p", func(dp *v1alpha1.DataPlane) { dp.Spec.Region = "eu-west-1" })
	young, old := newRegion("younger", time.Hour), newRegion("fleet", 2*time.Hour)
	const made, used = "Provisioning Ready=False/Provisioning on p", "Ready Ready=True/Ready on p"
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"the agent of its data plane": {[]client.Object{old, newPlane("fleet", "p"), newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady))}, used},
		"not of an earlier placement": {[]client.Object{old, newPlane("fleet", "p"), newAgent("fleet", "p", report("u-0", v1alpha1.AgentReady))}, made},
		"not of a reserved instance":  {[]client.Object{old, newPlane("fleet", "p"), newAgent("fleet", "p", reserved)}, made},
		"not of another data plane":   {[]client.Object{old, newPlane("fleet", "p"), other}, made},
		"nobody who has said nothing": {[]client.Object{old, newPlane("fleet", "p")}, made},
		"not one of the name in another namespace": {[]client.Object{
			old, newPlane("fleet", "p"), newPlane("evil", "p"), newAgent("evil", "p", report("u-1", v1alpha1.AgentReady)),
		}, made},
		"of two regions that of the older": {[]client.Object{
			young, old, newPlane("fleet", "p"), newPlane("younger", "p"),
			newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady)), newAgent("younger", "p", report("u-1", v1alpha1.AgentFailed)),
		}, used},
		"not one where no region is": {[]client.Object{
			newPlane("fleet", "p"), newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady)),
		}, "Provisioning Ready=Unknown/NoRegion on p"},
		"not one of another region": {
			[]client.Object{old, elsewhere, newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady))},
			"Failed Ready=False/DataPlaneGone on p",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := how(newRig(t, append(tc.objects, placed())...).settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestStatesOfADataPlane(t *testing.T) {
	silent := func(dp *v1alpha1.DataPlane) {
		dp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DataPlaneAgentLive, Status: metav1.ConditionFalse}}
	}
	phase := func(p v1alpha1.DataPlanePhase) func(*v1alpha1.DataPlane) {
		return func(dp *v1alpha1.DataPlane) { dp.Status.Phase = p }
	}
	const gone = "Failed Ready=False/DataPlaneGone on p"
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.DataPlane)
		want string
	}{
		"its agent does not report":     {silent, "Ready Ready=Unknown/AgentSilent on p"},
		"it may go":                     {phase(v1alpha1.PhaseDeprovisioning), "Ready Ready=True/Ready on p"},
		"it is released":                {func(dp *v1alpha1.DataPlane) { dp.Status.ReleasedAt = ptr.To(metav1.NewTime(noon)) }, gone},
		"its cluster is being released": {phase(v1alpha1.PhaseCleanup), gone},
		"it failed":                     {phase(v1alpha1.PhaseFailed), gone},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newRegion("fleet", 0), newPlane("fleet", "p", tc.edit), newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady)),
				newInstance(on("p", v1alpha1.InstanceReady)))
			if got := how(r.settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestADataPlaneThatDoesNotAnswerItsAgent(t *testing.T) {
	a := newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady))
	a.Status.Report.Ready, a.Status.Report.Reason = false, v1alpha1.ReasonPlaneSilent
	r := newRig(t, newRegion("fleet", 0), newPlane("fleet", "p"), a, newInstance(on("p", v1alpha1.InstanceReady)))
	if got := how(r.settle(t)); got != "Ready Ready=Unknown/DataPlaneSilent on p" {
		t.Errorf("got %q", got)
	}
}

// unreadable returns objects as ones that cannot be fully decoded.
func unreadable(hub client.Client, which func(client.Object) bool) client.Client {
	return interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if i, ok := o.(*v1alpha1.ServiceInstance); ok && which(o) {
				i.Unreadable = "it is broken"
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, l, opts...)
			switch l := l.(type) {
			case *v1alpha1.DataPlaneList:
				for n := range l.Items {
					if which(&l.Items[n]) {
						l.Items[n].Unreadable = "it is broken"
					}
				}
			case *v1alpha1.DataPlaneAgentList:
				for n := range l.Items {
					if which(&l.Items[n]) {
						l.Items[n].Unreadable = "it is broken"
					}
				}
			}
			return err
		},
	})
}

func TestWhatCannotBeReadIsLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		which func(client.Object) bool
		want  string
	}{
		"an instance":  {func(o client.Object) bool { _, ok := o.(*v1alpha1.ServiceInstance); return ok }, "Ready on p"},
		"a data plane": {func(o client.Object) bool { _, ok := o.(*v1alpha1.DataPlane); return ok }, "Deleting Ready=False/Unreadable on p"},
		"an agent":     {func(o client.Object) bool { _, ok := o.(*v1alpha1.DataPlaneAgent); return ok }, "Deleting Ready=False/Unreadable on p"},
	} {
		t.Run(name, func(t *testing.T) {
			plain := newHub(t, newRegion("fleet", 0), newPlane("fleet", "p", func(dp *v1alpha1.DataPlane) { dp.Status.Phase = v1alpha1.PhaseCleanup }),
				newAgent("fleet", "p", report("u-1", v1alpha1.AgentDeleted)), newInstance(on("p", v1alpha1.InstanceReady), doomed))
			if name == "an agent" {
				dp := newPlane("fleet", "p")
				if err := plain.Get(t.Context(), client.ObjectKeyFromObject(dp), dp); err != nil {
					t.Fatal(err)
				}
				dp.Status.Phase = v1alpha1.PhaseReady
				if err := plain.Update(t.Context(), dp); err != nil {
					t.Fatal(err)
				}
			}
			r := rigOn(unreadable(plain, tc.which))
			if got := how(r.settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
			if len(r.told.Events) == 0 {
				t.Error("nobody is told")
			}
		})
	}
}

// A cache that does not show the data plane yet does not affect the instance.
func TestADataPlaneIsGoneOnlyPastTheCache(t *testing.T) {
	hub := newHub(t, newRegion("fleet", 0), newPlane("fleet", "p"), newInstance(on("p", v1alpha1.InstanceReady), doomed))
	blind := interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, ok := l.(*v1alpha1.DataPlaneList); ok {
				return nil
			}
			return c.List(ctx, l, opts...)
		},
	})
	r := rigOn(blind)
	r.Live = hub
	if got := how(r.settle(t)); got != "Deleting Ready=False/Deleting on p" {
		t.Errorf("got %q", got)
	}
}

func TestAnErrorOfTheAPILetsNothingGo(t *testing.T) {
	hub := newHub(t, newRegion("fleet", 0), newInstance(on("p", v1alpha1.InstanceReady), doomed))
	down := errors.New("the API server is away")
	r := rigOn(hub)
	r.Live = interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return down },
	})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	if err := hub.Get(t.Context(), key, newInstance()); err != nil {
		t.Error(err)
	}
}

func TestWhatEarlierPlacementsLeftIsWaitedFor(t *testing.T) {
	twice := newInstance(on("", v1alpha1.InstancePending), doomed)
	twice.Status.Placements = 2
	listed := newAgent("fleet", "p")
	listed.Spec.Instances = []v1alpha1.AgentInstance{{UID: "u"}}
	for name, tc := range map[string]struct {
		agent *v1alpha1.DataPlaneAgent
		want  string
	}{
		"it is still listed":               {listed, "Deleting Ready=False/Deleting"},
		"it is there, and not listed":      {newAgent("fleet", "p", report("u-1", v1alpha1.AgentUnlisted)), "Deleting Ready=False/Deleting"},
		"it was refused, and may be there": {newAgent("fleet", "p", report("u-1", v1alpha1.AgentRejected)), "Deleting Ready=False/Deleting"},
		"it is gone":                       {newAgent("fleet", "p", report("u-1", v1alpha1.AgentDeleted)), "gone"},
		"nobody tells of it":               {newAgent("fleet", "p"), "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := how(newRig(t, newRegion("fleet", 0), newPlane("fleet", "p"), tc.agent, twice.DeepCopy()).settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestWhoHoldsAPlacedInstance(t *testing.T) {
	once := newInstance(on("p", v1alpha1.InstanceReady), doomed)
	twice := once.DeepCopy()
	twice.Status.Placements = 2
	done, kept := v1alpha1.AgentDeleted, v1alpha1.AgentUnlisted
	for name, tc := range map[string]struct {
		instance *v1alpha1.ServiceInstance
		more     []client.Object
		want     string
	}{
		"nobody else":                         {once, nil, "gone"},
		"not one where it cannot have been":   {once, []client.Object{newAgent("fleet", "q", report("u-1", kept))}, "gone"},
		"one where it may have been":          {twice, []client.Object{newAgent("fleet", "q", report("u-1", kept))}, "Deleting Ready=False/Deleting on p"},
		"not one of the name elsewhere":       {once, []client.Object{newPlane("other", "p"), newAgent("other", "p")}, "gone"},
		"one of the name that has it, too":    {once, []client.Object{newPlane("other", "p"), newAgent("other", "p", report("u-1", kept))}, "Deleting Ready=False/NoRegion on p"},
		"not one of the name that had it":     {once, []client.Object{newPlane("other", "p"), newAgent("other", "p", report("u-1", done))}, "gone"},
		"not one of the name that is no more": {once, []client.Object{newAgent("other", "p", report("u-1", kept))}, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(slices.Clone(tc.more), newRegion("fleet", 0), newPlane("fleet", "p"), newAgent("fleet", "p", report(tc.instance.PlacementID(), done)), tc.instance.DeepCopy())
			if got := how(newRig(t, objects...).settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestAPhaseIsToldOnce(t *testing.T) {
	r := newRig(t, newRegion("fleet", 0), newPlane("fleet", "p"), newAgent("fleet", "p", report("u-1", v1alpha1.AgentReady)),
		newInstance(on("p", v1alpha1.InstanceProvisioning)))
	r.settle(t)
	r.settle(t)
	close(r.told.Events)
	var got []string
	for e := range r.told.Events {
		got = append(got, e)
	}
	if strings.Join(got, "\n") != "Normal Ready Ready: The instance is ready for use." {
		t.Errorf("got %q", got)
	}
}

// An object that the API of a data plane refuses causes one Warning, in any phase of the instance.
func TestARefusedObjectIsOneWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		before v1alpha1.InstancePhase
		phase  v1alpha1.AgentPhase
		want   string
	}{
		"that cannot be made":                {v1alpha1.InstanceProvisioning, v1alpha1.AgentFailed, "Warning NotApplied Failed: no such field"},
		"that is retried":                    {v1alpha1.InstanceProvisioning, v1alpha1.AgentProvisioning, "Warning NotApplied no such field"},
		"of an instance that is in use":      {v1alpha1.InstanceReady, v1alpha1.AgentReady, "Warning NotApplied no such field"},
		"of one that is new, and is retried": {"", v1alpha1.AgentProvisioning, "Warning NotApplied Provisioning: no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := report("u-1", tc.phase)
			refused.Reason, refused.Message = v1alpha1.ReasonNotApplied, "no such field"
			r := newRig(t, newRegion("fleet", 0), newPlane("fleet", "p"), newAgent("fleet", "p", refused), newInstance(on("p", tc.before)))
			r.settle(t)
			r.settle(t)
			close(r.told.Events)
			var got []string
			for e := range r.told.Events {
				got = append(got, e)
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("the events are %q, want %q", got, tc.want)
			}
		})
	}
}

func TestARefusalIsTold(t *testing.T) {
	refused := report("u-1", v1alpha1.AgentRejected)
	refused.Message = "No room."
	r := newRig(t, newRegion("fleet", 0), newPlane("fleet", "p"), newAgent("fleet", "p", refused), newInstance(on("p", v1alpha1.InstanceProvisioning)))
	if got := how(r.settle(t)); got != "Pending Ready=False/NotPlaced Placed=False/Refused not p" {
		t.Errorf("got %q", got)
	}
	if e := <-r.told.Events; e != "Warning Refused Pending: Data plane p refused the instance: No room." {
		t.Errorf("told %q", e)
	}
}

func TestANewInstanceIsHeldFirst(t *testing.T) {
	r := newRig(t, newInstance(free))
	i := r.settle(t)
	if len(i.Finalizers) != 1 || how(i) != "Pending Placed=False/NoRegion" {
		t.Errorf("it is %q, with %v", how(i), i.Finalizers)
	}
}

// between runs do right before the first write of the controller.
func between(hub client.Client, do func() error) client.Client {
	done := false
	first := func() error {
		if done {
			return nil
		}
		done = true
		return do()
	}
	return interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return errors.Join(first(), c.Patch(ctx, o, p, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return errors.Join(first(), c.SubResource(sub).Patch(ctx, o, p, opts...))
		},
	})
}

// A concurrent write to an instance wins over a pass: it may have placed the instance.
func TestAnInstanceThatHasChangedIsLookedAtAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		edit    func(*v1alpha1.ServiceInstance)
		want    string
	}{
		"placed, before it is let go": {[]client.Object{newInstance(doomed)}, on("p", v1alpha1.InstanceProvisioning), "Deleting Ready=False/Deleting on p"},
		"placed anew, before its refusal": {
			[]client.Object{newInstance(on("p", v1alpha1.InstanceProvisioning)), newAgent("fleet", "p", report("u-1", v1alpha1.AgentRejected))},
			func(i *v1alpha1.ServiceInstance) { i.Status.Placements = 2 }, "Provisioning Ready=False/Provisioning on p",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := newHub(t, append(tc.objects, newRegion("fleet", 0), newPlane("fleet", "p"))...)
			r := rigOn(between(hub, func() error {
				var i v1alpha1.ServiceInstance
				if err := hub.Get(t.Context(), key, &i); err != nil {
					return err
				}
				tc.edit(&i)
				return hub.Status().Update(t.Context(), &i)
			}))
			if got := how(r.settle(t)); got != tc.want {
				t.Errorf("\ngot  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// A booking is not written to the status of an instance that is being deleted, and does not keep
// the instance.
func TestABookingDoesNotHoldAnInstance(t *testing.T) {
	booked := newPlane("fleet", "p", func(dp *v1alpha1.DataPlane) {
		dp.Status.Bookings = []v1alpha1.Booking{{Namespace: "team", Name: "k", UID: "u", Type: "standard", Units: 1}}
	})
	hub := newHub(t, newRegion("fleet", 0), booked, newInstance())
	var before v1alpha1.ServiceInstance
	if err := hub.Get(t.Context(), key, &before); err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(t.Context(), newInstance()); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	on("p", v1alpha1.InstanceProvisioning)(after)
	if _, err := patch.Status(t.Context(), hub, &before, after); !apierrors.IsConflict(err) {
		t.Errorf("it was told of a place: %v", err)
	}
	if got := how(rigOn(hub).settle(t)); got != "gone" {
		t.Errorf("it is %q", got)
	}
}
