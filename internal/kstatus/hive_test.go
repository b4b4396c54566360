package kstatus_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
	"hotspare.io/hotspare/internal/pool"
	poolfacts "hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/provision"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is an installed one of the pool p, in a state that package power reports.
func cluster(t *testing.T, name string, change func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	t.Helper()
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, Generation: 2}}
	cd.Spec.Installed = true
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"}
	if change != nil {
		change(cd)
	}
	return cd
}

func TestClusterPools(t *testing.T) {
	one := int32(1)
	gone := metav1.NewTime(noon)
	running := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.StatusRunning
		condition.Set(&cd.Status.Conditions, hivev1.ClusterReady, corev1.ConditionTrue, hivev1.ReasonRunning, "", noon)
	}
	for name, tc := range map[string]struct {
		change  func(*hivev1.ClusterPool)
		missing []string
		cluster func(*hivev1.ClusterDeployment)
		want    string
	}{
		"a pool with its clusters is settled":                 {cluster: running, want: "Current"},
		"a pool of size 0 is settled":                         {change: func(p *hivev1.ClusterPool) { p.Spec.Size = 0 }, want: "Current"},
		"a pool that creates a cluster is at work":            {want: "InProgress ClustersChanging"},
		"so is one whose cluster is being installed":          {cluster: func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }, want: "InProgress ClustersChanging"},
		"a pool without its image set needs a person":         {missing: []string{"cluster image set: not found"}, want: "Failed Missing"},
		"so does one that has its clusters, for the next one": {missing: []string{"cluster image set: not found"}, cluster: running, want: "Failed Missing"},
		"so does one that may have no more clusters": {
			change:  func(p *hivev1.ClusterPool) { p.Spec.MaxSize, p.Spec.Size = &one, 2 },
			cluster: running, want: "Failed MaxCapacity",
		},
		"so does one that may change nothing": {
			change: func(p *hivev1.ClusterPool) { p.Spec.MaxConcurrent = new(int32) }, want: "Failed Blocked",
		},
		"so does one whose cluster's install cannot begin": {
			cluster: func(cd *hivev1.ClusterDeployment) {
				cd.Spec.Installed = false
				condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionFalse, hivev1.ReasonSecretNotFound, "There is no Secret x: create it.", noon)
			},
			want: "Failed Blocked",
		},
		"a pool that is being deleted is so whatever it waits for": {
			change: func(p *hivev1.ClusterPool) { p.DeletionTimestamp = &gone }, cluster: running, want: "Terminating",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := poolfacts.Objects{
				Pool: &hivev1.ClusterPool{
					ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Generation: 7},
					Spec:       hivev1.ClusterPoolSpec{Size: 1, RunningCount: 1, Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte("{}")}}},
				},
				Clusters: map[string]*hivev1.ClusterDeployment{},
				Missing:  tc.missing,
			}
			if tc.change != nil {
				tc.change(o.Pool)
			}
			version, err := pool.Version(o.Pool.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if tc.cluster != nil {
				cd := cluster(t, "a", tc.cluster)
				cd.Annotations = map[string]string{hivev1.AnnotationPoolVersion: version}
				o.Clusters["a"] = cd
			}
			for range 2 {
				s, err := o.PoolSnapshot(inventory.Plan{}, noon)
				if err != nil {
					t.Fatal(err)
				}
				o.Pool.Status = o.PoolStatus(pool.Decide(s).Report, inventory.Plan{}, nil, noon)
			}
			kstatustest.ExpectStatus(t, o.Pool, tc.want)
			o.Pool.Generation++
			if tc.want != "Terminating" {
				kstatustest.ExpectStatus(t, o.Pool, "InProgress LatestGenerationNotObserved")
			}
		})
	}
}

// TestClustersThatAreInstalled reports what package provision decides.
func TestClustersThatAreInstalled(t *testing.T) {
	failed := provision.Attempt{Number: 0, Name: "c-0", InfraID: "x", Stage: hivev1.StageFailed, FailedAt: noon.Add(-time.Second), Reason: "Quota", Message: "no quota", Destroyed: true}
	open := provision.Attempt{Number: 0, Name: "c-0", InfraID: "x", Stage: hivev1.StageProvisioning}
	limit := 1
	for name, tc := range map[string]struct {
		change func(*provision.Snapshot)
		want   string
	}{
		"an install that begins":                     {func(*provision.Snapshot) {}, "InProgress Initializing"},
		"an install under way":                       {func(s *provision.Snapshot) { s.Attempts = []provision.Attempt{open} }, "InProgress Provisioning"},
		"an install that is tried again":             {func(s *provision.Snapshot) { s.Attempts = []provision.Attempt{failed} }, "InProgress Quota"},
		"an install that was given up":               {func(s *provision.Snapshot) { s.Attempts, s.Cluster.Limit = []provision.Attempt{failed}, &limit }, "Failed InstallAttemptsLimitReached"},
		"an install without its image set":           {func(s *provision.Snapshot) { s.Needs.ImageSet.Found = false }, "Failed ClusterImageSetNotFound"},
		"an install on a platform without installer": {func(s *provision.Snapshot) { s.Cluster.Executor = false }, "Failed UnsupportedPlatform"},
		"an install that waits for room": {func(s *provision.Snapshot) {
			s.Attempts = []provision.Attempt{open}
			s.Install = &provision.Answer{Outcome: provision.Waiting, Message: "no room", After: time.Minute}
		}, "InProgress Provisioning"},
		"an install whose credentials the platform refuses": {func(s *provision.Snapshot) {
			s.Attempts = []provision.Attempt{open}
			s.Install = &provision.Answer{Outcome: provision.Refused, Message: "no rights", Unauthorized: true}
		}, "Failed PlatformAuthError"},
	} {
		t.Run(name, func(t *testing.T) {
			s := provision.Snapshot{
				Now:     noon,
				Cluster: provision.Cluster{Name: "c", UID: "u", Marked: true, HasFinalizer: true, Executor: true},
				Needs: provision.Needs{
					Platform: "aws", Platforms: []string{"aws"},
					ImageSet: provision.Source{Name: "v4", Found: true}, InstallConfig: provision.Source{Name: "config", Found: true},
				},
				Destroy: map[string]provision.Answer{},
			}
			tc.change(&s)
			cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1}}
			cd.Status.ObservedGeneration = 1
			for _, c := range provision.Decide(s).Conditions {
				condition.Set(&cd.Status.Conditions, c.Type, c.Status, c.Reason, c.Message, noon)
			}
			kstatus.ReportClusterDeployment(cd, noon)
			kstatustest.ExpectStatus(t, cd, tc.want)
		})
	}
}

// TestClustersThatRun reports what package power decides.
func TestClustersThatRun(t *testing.T) {
	fake := power.Snapshot{Seed: "u", Installed: true, Fake: true, DesiredState: hivev1.PowerRunning}
	for name, tc := range map[string]struct {
		change func(*power.Snapshot)
		want   string
	}{
		"a cluster that runs": {func(*power.Snapshot) {}, "Current"},
		// Hive's clients need Ready to be False then, and kstatus goes by it.
		"a cluster that hibernates on purpose": {func(s *power.Snapshot) { s.DesiredState = hivev1.PowerHibernating }, "InProgress StoppingOrHibernating"},
		"a cluster whose power is paused":      {func(s *power.Snapshot) { s.Paused = true }, "Failed PowerStatePaused"},
		"a cluster whose machines start": {func(s *power.Snapshot) {
			s.Fake, s.Actuator, s.Platform, s.InstallVersion = false, true, "local", "v1.36.3"
			s.Machines = cloud.Machines{{Name: "m", State: cloud.Stopped}}
			s.Record = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(noon)}
		}, "InProgress StartingMachines"},
		"a cluster whose machines do not start in time": {func(s *power.Snapshot) {
			s.Fake, s.Actuator, s.Platform, s.InstallVersion = false, true, "local", "v1.36.3"
			s.Machines = cloud.Machines{{Name: "m", State: cloud.Stopped}}
			s.Limits.ToRunning = time.Minute
			s.Record = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(noon.Add(-time.Hour))}
		}, "Failed FailedToStart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake
			tc.change(&s)
			d := power.Decide(s, noon)
			cd := cluster(t, "c", nil)
			cd.Status.ObservedGeneration = cd.Generation
			condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, d.Hibernating.Status, d.Hibernating.Reason, d.Hibernating.Message, noon)
			condition.Set(&cd.Status.Conditions, hivev1.ClusterReady, d.Ready.Status, d.Ready.Reason, d.Ready.Message, noon)
			kstatus.ReportClusterDeployment(cd, noon)
			kstatustest.ExpectStatus(t, cd, tc.want)
			for _, typ := range []string{hivev1.ConditionReconciling, hivev1.ConditionStalled} {
				if c := condition.Find(cd.Status.Conditions, typ); c != nil && s.DesiredState == hivev1.PowerHibernating {
					t.Errorf("a cluster that hibernates on purpose has condition %s", typ)
				}
			}
		})
	}
}
