package gate_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(offset time.Duration) *metav1.Time {
	t := metav1.NewTime(noon.Add(offset))
	return &t
}

func requirement(names ...string) gate.Requirement {
	r := gate.Requirement{Version: "v1", Timeout: 10 * time.Minute, Interval: 30 * time.Second}
	for _, name := range names {
		typ := v1alpha1.GateNodesReady
		if name == "pod" {
			typ = v1alpha1.GatePodRuns
		}
		r.Gates = append(r.Gates, v1alpha1.Gate{Name: name, Type: typ})
	}
	return r
}

// describe returns a plan in one line.
func describe(p gate.Plan) string {
	out := fmt.Sprintf("%s %s: %s", p.Condition.Status, p.Condition.Reason, p.Condition.Message)
	if p.Condition == (condition.Value{}) {
		out = "no condition"
	}
	if r := p.Record; r != nil {
		out += fmt.Sprintf("; version %q, passed %t, once %v", r.Version, r.Passed, r.PassedOnce)
		if r.FailedSince != nil {
			out += fmt.Sprintf(", failing for %s, broken in %s", noon.Sub(r.FailedSince.Time), r.Deadline.Sub(noon))
		}
		if r.FirstPassedAt != nil {
			out += fmt.Sprintf(", first passed %s ago", noon.Sub(r.FirstPassedAt.Time))
		}
	}
	return out + fmt.Sprintf("; again in %s", p.Next)
}

func TestVerdicts(t *testing.T) {
	pass, fail := gate.Answer{Passed: true}, gate.Answer{Message: "it is red"}
	run := noon.Add(-time.Minute)
	record := hivev1.GateRecord{Version: "v1", RunStartedAt: at(-time.Minute)}
	failing := record
	failing.FailedSince, failing.Deadline, failing.PassedOnce = at(-50*time.Second), at(9*time.Minute), []string{"pod"}
	good := record
	good.Passed, good.FirstPassedAt, good.PassedOnce = true, at(-time.Hour), []string{"pod"}
	earlier := good
	earlier.RunStartedAt = at(-time.Hour)
	for name, tc := range map[string]struct {
		in   gate.Snapshot
		want string
	}{
		"a pool without gates writes nothing": {gate.Snapshot{Running: true}, "no condition; again in 0s"},
		"a pool that has no gates any more removes the record": {
			gate.Snapshot{Running: true, Record: &good, Reported: true}, "no condition; again in 0s",
		},
		"it keeps the record while pods of the gates may remain": {
			gate.Snapshot{Running: true, Record: &good, Reported: true, PodProblem: "connection refused"},
			`Unknown NotChecked: There are no gates any more, and the pods of earlier ones cannot be deleted: connection refused.; version "", passed false, once [], first passed 1h0m0s ago; again in 15s`,
		},
		"every gate passes": {
			gate.Snapshot{Requirement: requirement("a", "pod"), Running: true, Answers: map[string]gate.Answer{"a": pass, "pod": pass}},
			`True GatesPassed: Every gate of the cluster passes.; version "v1", passed true, once [pod], first passed 0s ago; again in 30s`,
		},
		"one gate fails": {
			gate.Snapshot{Requirement: requirement("a", "b"), Running: true, Answers: map[string]gate.Answer{"a": pass, "b": fail}},
			`False GateFailed: A gate fails: b: it is red.; version "v1", passed false, once [], failing for 0s, broken in 10m0s; again in 500ms`,
		},
		"a gate without an answer fails": {
			gate.Snapshot{Requirement: requirement("a", "b"), Running: true, Answers: map[string]gate.Answer{"b": fail}},
			`False GateFailed: Gates fail: a: it was not checked; b: it is red.; version "v1", passed false, once [], failing for 0s, broken in 10m0s; again in 500ms`,
		},
		"a gate that still fails keeps its deadline": {
			gate.Snapshot{Requirement: requirement("a", "pod"), Running: true, Record: &failing, Answers: map[string]gate.Answer{"a": fail}},
			`False GateFailed: A gate fails: a: it is red.; version "v1", passed false, once [pod], failing for 50s, broken in 9m10s; again in 5s`,
		},
		"a gate that has passed fails again from now on": {
			gate.Snapshot{Requirement: requirement("a", "pod"), Running: true, Record: &good, Answers: map[string]gate.Answer{"a": fail}},
			`False GateFailed: A gate fails: a: it is red.; version "v1", passed false, once [pod], failing for 0s, broken in 10m0s, first passed 1h0m0s ago; again in 500ms`,
		},
		"another run checks every gate again": {
			gate.Snapshot{Requirement: requirement("a", "pod"), Running: true, Record: &earlier, Answers: map[string]gate.Answer{"a": pass}},
			`False GateFailed: A gate fails: pod: it was not checked.; version "v1", passed false, once [], failing for 0s, broken in 10m0s, first passed 1h0m0s ago; again in 500ms`,
		},
		"a cluster that does not run has no verdict": {
			gate.Snapshot{Requirement: requirement("a"), Record: &good},
			`Unknown NotChecked: The cluster does not run: hotspare checks its gates when it runs.; version "", passed false, once [], first passed 1h0m0s ago; again in 0s`,
		},
		"a cluster that never ran is left alone": {gate.Snapshot{Requirement: requirement("a")}, "no condition; again in 0s"},
		"unknown gates pass for nobody": {
			gate.Snapshot{Requirement: gate.Requirement{Version: "unresolved", Problem: "x does not exist"}, Running: true, Record: &good},
			`Unknown NotChecked: The gates are not checked: x does not exist.; version "", passed false, once [], first passed 1h0m0s ago; again in 0s`,
		},
		"a fake cluster passes": {
			gate.Snapshot{Requirement: requirement("a", "pod"), Running: true, Fake: true},
			`True GatesPassed: The cluster is fake: it passes every gate.; version "v1", passed true, once [], first passed 0s ago; again in 0s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = noon
			if tc.in.Running && tc.in.Requirement.Version != "" {
				tc.in.RunStartedAt = run
			}
			if got := describe(gate.Decide(tc.in)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestPodsAreDeletedOnceIfThereAreNoGatesAnyMore(t *testing.T) {
	record := &hivev1.GateRecord{}
	for name, tc := range map[string]struct {
		in   gate.Snapshot
		want bool
	}{
		"a pool that never had gates":        {gate.Snapshot{Running: true}, false},
		"one that had gates":                 {gate.Snapshot{Running: true, Record: record}, true},
		"one that only reported them":        {gate.Snapshot{Running: true, Reported: true}, true},
		"one that has gates":                 {gate.Snapshot{Running: true, Record: record, Requirement: requirement("a")}, false},
		"a cluster that does not run":        {gate.Snapshot{Record: record}, false},
		"a cluster that exists in name only": {gate.Snapshot{Running: true, Record: record, Fake: true}, false},
	} {
		if got := tc.in.HasPodsToDelete(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGatesToCheck(t *testing.T) {
	run := noon.Add(-time.Minute)
	r := &hivev1.GateRecord{Version: "v1", RunStartedAt: at(-time.Minute), PassedOnce: []string{"pod"}}
	for name, tc := range map[string]struct {
		in   gate.Snapshot
		want string
	}{
		"all at first": {gate.Snapshot{Running: true}, "[a pod]"},
		"not again one that has passed in this run": {gate.Snapshot{Running: true, Record: r, RunStartedAt: run}, "[a]"},
		"again in another run":                      {gate.Snapshot{Running: true, Record: r, RunStartedAt: noon}, "[a pod]"},
		"none of a cluster that does not run":       {gate.Snapshot{Record: r, RunStartedAt: run}, "[]"},
		"none of a fake cluster":                    {gate.Snapshot{Running: true, Fake: true}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Requirement = requirement("a", "pod")
			names := []string{}
			for _, g := range tc.in.GatesToCheck() {
				names = append(names, g.Name)
			}
			if got := fmt.Sprint(names); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// running is a spare that has passed its gates, changed.
func running(changes ...func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		Spec: hivev1.ClusterDeploymentSpec{Installed: true, PowerState: hivev1.PowerRunning, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"}},
		Status: hivev1.ClusterDeploymentStatus{
			PowerState: hivev1.StatusRunning, PowerTransition: &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: *at(0)},
			Gates: &hivev1.GateRecord{Version: "v1", RunStartedAt: at(0), Passed: true, FirstPassedAt: at(0)},
		},
	}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterGatesPassed, corev1.ConditionTrue, hivev1.ReasonGatesPassed, "x", noon)
	for _, change := range changes {
		change(cd)
	}
	return cd
}

func TestAVerdictDoesNotOutliveItsRun(t *testing.T) {
	for name, tc := range map[string]struct {
		cd   *hivev1.ClusterDeployment
		want string
	}{
		"it runs": {running(), "v1"},
		"it has been resumed since": {
			running(func(cd *hivev1.ClusterDeployment) { cd.Status.PowerTransition.StartedAt = *at(time.Second) }), "",
		},
		"it does not run": {running(func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.ReasonStopping }), ""},
		"a gate fails":    {running(func(cd *hivev1.ClusterDeployment) { cd.Status.Gates.Passed = false }), ""},
		"it has none":     {running(func(cd *hivev1.ClusterDeployment) { cd.Status.Gates = nil }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			gate.EndRun(tc.cd, noon)
			if got := gate.PassedVersion(tc.cd); got != tc.want {
				t.Errorf("it has passed %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheEndOfARun(t *testing.T) {
	stopping := func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.ReasonStopping }
	cd := running(stopping)
	gate.EndRun(cd, noon)
	if r := cd.Status.Gates; r == nil || r.FirstPassedAt == nil || r.Version != "" {
		t.Errorf("the record is %+v: only firstPassedAt should remain", r)
	}
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterGatesPassed); c == nil || c.Status != corev1.ConditionUnknown {
		t.Errorf("the condition is %+v", c)
	}
	claimed := running(stopping, func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" })
	gate.EndRun(claimed, noon)
	if claimed.Status.Gates != nil || len(claimed.Status.Conditions) > 0 {
		t.Errorf("a claimed cluster has %+v", claimed.Status)
	}
	plain := running(stopping, func(cd *hivev1.ClusterDeployment) { cd.Status.Gates, cd.Status.Conditions = nil, nil })
	gate.EndRun(plain, noon)
	if plain.Status.Gates != nil || len(plain.Status.Conditions) > 0 {
		t.Errorf("a cluster without gates has %+v", plain.Status)
	}
}

func TestRequirements(t *testing.T) {
	b := func(gates ...v1alpha1.Gate) *v1alpha1.ClusterBootstrap {
		return &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.ClusterBootstrapSpec{Gates: gates, GateTimeout: "5m", CheckInterval: "1ms"}}
	}
	p := &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}}}
	nodes, pods := v1alpha1.Gate{Name: "a", Type: v1alpha1.GateNodesReady}, v1alpha1.Gate{Name: "a", Type: v1alpha1.GatePodRuns}
	r := gate.NewRequirement(p, b(nodes))
	if r.Problem != "" || r.Version == "" || r.Timeout != 5*time.Minute || r.Interval != time.Second {
		t.Errorf("got %+v", r)
	}
	if other := gate.NewRequirement(p, b(pods)); other.Version == r.Version {
		t.Error("other gates have the same version")
	}
	if none := gate.NewRequirement(nil, nil); none.Version != "" || none.Problem != "" {
		t.Errorf("a pool without a policy requires %+v", none)
	}
	invalid := b(nodes)
	invalid.Status.Conditions = []metav1.Condition{{Type: v1alpha1.BootstrapValid, Status: metav1.ConditionFalse, Message: "no"}}
	unreadable := b(nodes)
	unreadable.Unreadable = "spec"
	lost := &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	lost.Unreadable = "spec"
	for name, got := range map[string]gate.Requirement{
		"it does not exist": gate.NewRequirement(p, nil), "it is not valid": gate.NewRequirement(p, invalid),
		"it cannot be read": gate.NewRequirement(p, unreadable), "the policy cannot be read": gate.NewRequirement(lost, nil),
	} {
		if got.Problem == "" || got.Version == "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
