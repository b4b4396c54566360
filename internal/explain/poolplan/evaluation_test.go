package poolplan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/pool"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// outlook is that of a pool with a claim that waits and an install that cannot begin.
func outlook(t *testing.T, change func(*hivev1.ClusterPool, *hivev1.ClusterDeployment)) poolplan.View {
	t.Helper()
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}}
	version, err := pool.Version(p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "p-1", Name: "p-1", Annotations: map[string]string{hivev1.AnnotationPoolVersion: version}},
		Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "ci", PoolName: "p"}},
	}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionFalse, "X", "the base domain is not valid.", noon)
	change(p, cd)
	claim := hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	f := poolplan.New(p, []hivev1.ClusterClaim{claim}, []hivev1.ClusterDeployment{*cd}, nil)
	if err := f.Decide(noon); err != nil {
		t.Fatal(err)
	}
	return f.BuildView(noon, remedy.FormatPlainCommand)
}

func TestWhatIsSaidWhileNothingCanHappen(t *testing.T) {
	v := outlook(t, func(*hivev1.ClusterPool, *hivev1.ClusterDeployment) {})
	if want := "blocked; 1 claim waiting; 1 install cannot begin: p-1: the base domain is not valid"; v.Plan != want {
		t.Errorf("plan: %s\nwant: %s", v.Plan, want)
	}
	if want := "no free cluster runs; none is on the way, since p-1 cannot be installed: see what it lacks"; v.Claims[0].Message != want {
		t.Errorf("the claim: %s\nwant:      %s", v.Claims[0].Message, want)
	}
	var duties []string
	for _, d := range v.ToDo {
		duties = append(duties, d.Of+": "+d.Text)
	}
	got := strings.Join(duties, "\n")
	if strings.Contains(got, "It is served automatically") || !strings.Contains(got, "p: 1 install cannot begin.") {
		t.Errorf("to do:\n%s", got)
	}
}

func TestWhatIsSaidOnceThePoolIsCorrected(t *testing.T) {
	one := int32(1)
	v := outlook(t, func(p *hivev1.ClusterPool, _ *hivev1.ClusterDeployment) {
		p.Spec.BaseDomain, p.Spec.MaxConcurrent = "example.com", &one
	})
	if want := "it cannot be installed yet: the base domain is not valid; it is deleted now: it is being created from an older version of the pool"; v.Clusters[0].Message != want {
		t.Errorf("the cluster: %s\nwant:        %s", v.Clusters[0].Message, want)
	}
}

func TestWhatIsSaidWhileTheOnlyInstallFails(t *testing.T) {
	v := outlook(t, func(_ *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
		condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, "", noon)
		condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionFailed, corev1.ConditionTrue, hivev1.ReasonPrepareFailed, "prepare exited with code 1: the region is unknown.", noon)
	})
	if want := "its last install attempt failed, and is retried: prepare exited with code 1: the region is unknown"; !strings.HasPrefix(v.Clusters[0].Message, want) {
		t.Errorf("the cluster: %s\nwant:        %s", v.Clusters[0].Message, want)
	}
	if want := "no free cluster runs; none is on the way, since the install of p-1 has failed, and is retried"; v.Claims[0].Message != want {
		t.Errorf("the claim: %s\nwant:      %s", v.Claims[0].Message, want)
	}
	if len(v.ToDo) != 1 || v.ToDo[0].Of != "p-1" || v.ToDo[0].Wait || v.ToDo[0].Command != "hotspare cluster logs p-1 -n ci" {
		t.Errorf("to do: %+v, want only the cluster's log", v.ToDo)
	}
}

func TestWhatIsSaidWhileNoClusterResumes(t *testing.T) {
	v := outlook(t, func(_ *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
		cd.Spec.Installed, cd.Spec.PowerState = true, hivev1.PowerRunning
		condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionTrue, hivev1.ReasonAllRequirementsMet, "", noon)
		condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart, "observe printed garbage.", noon.Add(-time.Hour))
		condition.Set(&cd.Status.Conditions, hivev1.ClusterReady, corev1.ConditionFalse, hivev1.ReasonFailedToStart, "observe printed garbage.", noon.Add(-time.Hour))
	})
	if !strings.HasPrefix(v.Plan, "blocked; 1 claim waiting; p-1 does not resume: see why with hotspare cluster describe p-1") {
		t.Errorf("plan: %s", v.Plan)
	}
	var duties []string
	for _, d := range v.ToDo {
		duties = append(duties, d.Of+": "+d.Text+" "+d.Command)
	}
	if got := strings.Join(duties, "\n"); got != "p-1: See why. hotspare cluster describe p-1 -n ci" {
		t.Errorf("to do:\n%s", got)
	}
}

// runningCluster returns a pool of one cluster, which runs, and this cluster.
func runningCluster(t *testing.T) (*hivev1.ClusterPool, hivev1.ClusterDeployment) {
	t.Helper()
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}, Spec: hivev1.ClusterPoolSpec{Size: 1, RunningCount: 1}}
	version, err := pool.Version(p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return p, hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "p-1", Name: "p-1", Annotations: map[string]string{hivev1.AnnotationPoolVersion: version}},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "ci", PoolName: "p"},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
	}
}

// A person must correct steps and gates that fail: somebody must say so, and where.
func TestWhatIsSaidWhileABootstrapFails(t *testing.T) {
	takesSteps := func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
		p.Status.StepsVersion = "new"
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "new", StepStartedAt: &metav1.Time{Time: noon}, Deadline: &metav1.Time{Time: noon.Add(time.Hour)}}
		condition.Set(&cd.Status.Conditions, hivev1.ClusterBootstrapped, corev1.ConditionFalse, hivev1.ReasonStepFailed, "step web fails.", noon)
	}
	const get = " hotspare -n ci kubectl get clusterbootstraps"
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterPool, *hivev1.ClusterDeployment)
		policy *v1alpha1.PoolPolicy
		want   string
	}{
		"a step fails": {takesSteps, nil, "p-1: If the step cannot succeed, correct it, or what it refers to." + get},
		"the steps have failed": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				takesSteps(p, cd)
				p.Status.FailedStepsVersion, p.Status.FailedStepsTime = "new", &metav1.Time{Time: noon}
			},
			&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "base"}}},
			"p: The steps of its bootstrap, or the gates after them, have failed: correct what failed. One cluster tries that first, and then the others do. hotspare -n ci kubectl edit clusterbootstrap base",
		},
		"a gate fails": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				p.Status.GatesVersion = "g"
				cd.Status.Gates = &hivev1.GateRecord{Version: "g", FailedSince: &metav1.Time{Time: noon}, Deadline: &metav1.Time{Time: noon.Add(time.Hour)}}
				condition.Set(&cd.Status.Conditions, hivev1.ClusterGatesPassed, corev1.ConditionFalse, "GateFailed", "gate web fails.", noon)
			},
			nil, "p-1: The gate is checked again until it passes. If it cannot pass, correct it." + get,
		},
		"a step fails in a cluster that is being deleted": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				takesSteps(p, cd)
				cd.DeletionTimestamp = &metav1.Time{Time: noon}
			},
			nil, "",
		},
		"a step has failed in a cluster that was adopted": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				takesSteps(p, cd)
				cd.Spec.PreserveOnDelete = true
				cd.Status.Bootstrap.Deadline.Time = noon.Add(-time.Second)
			},
			nil, "p-1: Nothing replaces a cluster that was adopted: correct the step or the gate that failed." + get,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, cd := runningCluster(t)
			tc.change(p, &cd)
			f := poolplan.New(p, nil, []hivev1.ClusterDeployment{cd}, nil)
			f.Policy = tc.policy
			if err := f.Decide(noon); err != nil {
				t.Fatal(err)
			}
			var duties []string
			for _, d := range f.BuildView(noon, remedy.FormatPlainCommand).ToDo {
				duties = append(duties, d.Of+": "+d.Text+" "+d.Command)
			}
			if got := strings.Join(duties, "\n"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A claim whose only cluster does not pass its gates waits for whoever corrects them.
func TestWhatIsSaidOfAClaimWhoseClusterHasABootstrap(t *testing.T) {
	const raise = "p: Raise maxSize, or release claims: claimed clusters count. hotspare -n ci kubectl edit clusterpool p\n"
	const auto = raise + "x: It is served automatically. "
	for name, tc := range map[string]struct {
		change           func(*hivev1.ClusterPool, *hivev1.ClusterDeployment)
		message, actions string
	}{
		"gates are being checked": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				p.Status.GatesVersion, cd.Status.Gates = "g", &hivev1.GateRecord{Version: "g"}
			},
			"no free cluster runs; one is on the way: p-1 runs, and its gates are being checked", auto,
		},
		"a gate fails": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				p.Status.GatesVersion = "g"
				cd.Status.Gates = &hivev1.GateRecord{Version: "g", FailedSince: &metav1.Time{Time: noon}, Deadline: &metav1.Time{Time: noon.Add(time.Hour)}}
				condition.Set(&cd.Status.Conditions, hivev1.ClusterGatesPassed, corev1.ConditionFalse, "GateFailed", "gate web fails.", noon)
			},
			"no free cluster runs; none is on the way, and no more are created: maxSize is 1; a step of the bootstrap or a gate fails in p-1: hotspare explain cluster says what fails",
			raise + "p-1: The gate is checked again until it passes. If it cannot pass, correct it. hotspare -n ci kubectl get clusterbootstraps",
		},
		"a step is being taken": {
			func(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) {
				p.Status.StepsVersion = "new"
				cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "new", StepStartedAt: &metav1.Time{Time: noon}, Deadline: &metav1.Time{Time: noon.Add(time.Hour)}}
			},
			"no free cluster runs; one is on the way: p-1 takes the steps of the bootstrap", auto,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, cd := runningCluster(t)
			p.Spec.MaxSize = &p.Spec.Size
			tc.change(p, &cd)
			claim := hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
			f := poolplan.New(p, []hivev1.ClusterClaim{claim}, []hivev1.ClusterDeployment{cd}, nil)
			if err := f.Decide(noon); err != nil {
				t.Fatal(err)
			}
			v := f.BuildView(noon, remedy.FormatPlainCommand)
			if v.Claims[0].Message != tc.message {
				t.Errorf("got  %s\nwant %s", v.Claims[0].Message, tc.message)
			}
			var actions []string
			for _, a := range v.ToDo {
				actions = append(actions, a.Of+": "+a.Text+" "+a.Command)
			}
			if got := strings.Join(actions, "\n"); got != tc.actions {
				t.Errorf("to do:\ngot  %s\nwant %s", got, tc.actions)
			}
		})
	}
}

// The bootstrap of a pool is named by its PoolPolicy, not by the pool.
func TestWhatIsSaidWhileTheBootstrapIsMissing(t *testing.T) {
	p, _ := runningCluster(t)
	p.Status.GatesVersion, p.Status.StepsVersion = "unresolved", "unresolved"
	condition.Set(&p.Status.Conditions, hivev1.PoolMissingDependencies, corev1.ConditionTrue, hivev1.ReasonMissing, "ClusterBootstrap base does not exist", noon)
	f := poolplan.New(p, nil, nil, nil)
	f.Policy = &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}, Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "base"}}}
	if err := f.Decide(noon); err != nil {
		t.Fatal(err)
	}
	do := f.BuildView(noon, remedy.FormatPlainCommand).ToDo
	if len(do) != 1 || do[0].Command != "hotspare -n ci kubectl edit poolpolicy p" {
		t.Errorf("to do: %+v", do)
	}
}

func TestWhatIsSaidOfAClaimThatAPolicyHolds(t *testing.T) {
	for reason, want := range map[string]string{
		hivev1.ReasonNotPermitted:   "Ask somebody who may write ClaimPolicies to permit it.",
		hivev1.ReasonCreatorUnknown: "Release it, and create it again.",
		hivev1.ReasonLimitReached:   "It is served automatically.",
	} {
		c := hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
		condition.Set(&c.Status.Conditions, hivev1.ClaimAdmitted, corev1.ConditionFalse, reason, "Why", noon)
		f := poolplan.New(&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}}, []hivev1.ClusterClaim{c}, nil, nil)
		if err := f.Decide(noon); err != nil {
			t.Fatal(err)
		}
		v := f.ExplainClaim(&c, remedy.FormatPlainCommand)
		if v.Message != "Why" || v.Position != 0 || v.ToDo == nil || v.ToDo.Text != want {
			t.Errorf("%s: %q, to do %+v, want %q", reason, v.Message, v.ToDo, want)
		}
	}
}

// The steps and gates that a pool requires are known from its status: the plan of explain is that of the controller,
// which may read the Secrets that the steps refer to.
func TestAClusterWithOldStepsIsReplaced(t *testing.T) {
	p, cd := runningCluster(t)
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "old", FinishedAt: &metav1.Time{Time: noon}}
	for _, tc := range []struct{ steps, gates, want string }{
		{"", "", "it runs: the next claim gets it"}, // nothing is recorded yet
		{"old", "", "it runs: the next claim gets it"},
		{"unresolved", "", "it runs: the next claim gets it"},
		{"new", "", "it runs; it is deleted now: it has not taken the steps of the pool's bootstrap as they are now"},
		{"old", "gates", "it runs, and its gates are being checked"},
		{"old", "unresolved", "it runs, and its gates are being checked"},
	} {
		p.Status.StepsVersion, p.Status.GatesVersion = tc.steps, tc.gates
		f := poolplan.New(p, nil, []hivev1.ClusterDeployment{cd}, nil)
		if err := f.Decide(noon); err != nil {
			t.Fatal(err)
		}
		if got := f.BuildView(noon, remedy.FormatPlainCommand).Clusters[0].Message; got != tc.want {
			t.Errorf("steps %q, gates %q:\ngot  %s\nwant %s", tc.steps, tc.gates, got, tc.want)
		}
		if f.Told.StepsVersion != tc.steps || f.Told.GatesVersion != tc.gates {
			t.Errorf("the status does not keep steps %q and gates %q: %q and %q", tc.steps, tc.gates, f.Told.StepsVersion, f.Told.GatesVersion)
		}
	}
}
