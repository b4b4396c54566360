package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

// troubles is a hub with pools that do not do what people hope for.
func troubles() []client.Object {
	out := []client.Object{
		brokenPool(), fullPool(), lackingPool(), leavingPool(), crampedPool(),
		claimOn("full", "first", ""), later(claimOn("full", "second", "")), claimOn("full", "owner", "full-1aaaa"),
		asleep(claimOn("full", "sleeper", "full-2bbbb")), lost(claimOn("broken", "lost", "broken-0gone")),
		claimOn("leaving", "tenant", "leaving-1aaaa"), claimOn("nowhere", "orphan", ""), claimOn("cramped", "eager", ""),
		of("full", newCluster("full-1aaaa", "owner", hivev1.PowerRunning, hivev1.StatusRunning)),
		of("full", newCluster("full-2bbbb", "sleeper", hivev1.PowerHibernating, hivev1.StatusHibernating)),
		of("leaving", newCluster("leaving-1aaaa", "tenant", hivev1.PowerRunning, hivev1.StatusRunning)),
	}
	return append(out, damaged()...)
}

func later(c *hivev1.ClusterClaim) *hivev1.ClusterClaim {
	c.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	return c
}

func asleep(c *hivev1.ClusterClaim) *hivev1.ClusterClaim {
	condition.Set(&c.Status.Conditions, hivev1.ClaimClusterRunning, corev1.ConditionFalse, hivev1.ReasonHibernating, "Cluster is hibernating.", now)
	return c
}

func lost(c *hivev1.ClusterClaim) *hivev1.ClusterClaim {
	condition.Set(&c.Status.Conditions, hivev1.ClaimClusterRunning, corev1.ConditionFalse, hivev1.ReasonClusterDeleted, "Assigned cluster has been deleted", now)
	return c
}

// of gives a cluster to a pool of the default namespace, as one of its present version.
func of(name string, cd *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	cd.Spec.ClusterPoolRef.PoolName = name
	for _, p := range []*hivev1.ClusterPool{brokenPool(), fullPool(), leavingPool()} {
		if p.Name == name {
			version, err := pool.Version(p.Spec)
			base.MustSucceed(err)
			cd.Annotations = map[string]string{hivev1.AnnotationPoolVersion: version}
		}
	}
	return cd
}

func poolNamed(name string, size, running int32) *hivev1.ClusterPool {
	p := devPool()
	p.Name, p.Spec.Size, p.Spec.RunningCount, p.Spec.MaxSize, p.Status = name, size, running, nil, hivev1.ClusterPoolStatus{}
	return p
}

func brokenPool() *hivev1.ClusterPool {
	p := poolNamed("broken", 6, 1)
	p.Spec.MaxConcurrent = new(int32(1))
	p.Spec.PowerstateTransitionToRunningTimeout = base.ToAPIDuration(5 * time.Minute)
	return p
}

func fullPool() *hivev1.ClusterPool {
	p := poolNamed("full", 1, 1)
	p.Spec.MaxSize = new(int32(2))
	return p
}

func lackingPool() *hivev1.ClusterPool {
	p := poolNamed("lacking", 2, 5)
	condition.Set(&p.Status.Conditions, hivev1.PoolMissingDependencies, corev1.ConditionTrue, hivev1.ReasonMissing,
		`cluster image set: ClusterImageSet "kubernetes" does not exist: create it, or change spec.imageSetRef`, now.Add(-time.Hour))
	return p
}

func crampedPool() *hivev1.ClusterPool {
	p := poolNamed("cramped", 3, 1)
	condition.Set(&p.Status.Conditions, hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonNoRoom,
		"400 MB of memory are needed for each cluster, and 100 MB are free", now.Add(-time.Minute))
	return p
}

func leavingPool() *hivev1.ClusterPool {
	p := poolNamed("leaving", 2, 0)
	p.Finalizers = []string{"hive.openshift.io/clusters"}
	gone := metav1.NewTime(now.Add(-time.Minute))
	p.DeletionTimestamp = &gone
	return p
}

// damaged are the clusters of the broken pool: each has something else.
func damaged() []client.Object {
	stopped := of("broken", newCluster("broken-1fail", "", "", ""))
	stopped.Spec.Installed = false
	condition.Set(&stopped.Status.Conditions, hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "DNSAlreadyExists", "Attempt 3 failed: the record api.x exists.", now)
	condition.Set(&stopped.Status.Conditions, hivev1.ClusterProvisionStopped, corev1.ConditionTrue, hivev1.ReasonInstallAttemptsUsedUp, "", now)

	hung := of("broken", newCluster("broken-2hung", "", hivev1.PowerRunning, "WaitingForNodes"))
	hung.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(now.Add(-6 * time.Minute))}
	condition.Set(&hung.Status.Conditions, hivev1.ClusterReady, corev1.ConditionFalse, hivev1.ReasonWaitingForNodes, "The cluster's API does not answer: timeout.", now)

	disk := of("broken", newCluster("broken-3disk", "", hivev1.PowerRunning, "FailedToStart"))
	disk.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: metav1.NewTime(now.Add(-10 * time.Second)), MachinesFailed: true}
	condition.Set(&disk.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart, "machine broken-3disk-master-0: its disk is missing.", now)

	again := of("broken", newCluster("broken-4again", "", "", ""))
	again.Spec.Installed = false
	condition.Set(&again.Status.Conditions, hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "Unknown", "Attempt 1 failed: no words.", now)

	old := newCluster("broken-5old", "", hivev1.PowerHibernating, hivev1.StatusHibernating)
	old.Spec.ClusterPoolRef.PoolName = "broken"

	stuck := of("broken", newCluster("broken-6stuck", "", hivev1.PowerRunning, hivev1.StatusRunning))
	stuck.Finalizers = []string{"hive.openshift.io/deprovision"}
	stuck.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Hour)))
	condition.Set(&stuck.Status.Conditions, hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue, "DestroyFailed", "the credentials are gone", now)

	marked := of("broken", newCluster("broken-7mark", "", hivev1.PowerHibernating, hivev1.StatusHibernating))
	marked.Annotations[hivev1.AnnotationRemove] = "true"

	waiting := of("broken", newCluster("broken-8wait", "", "", ""))
	waiting.Spec.Installed = false
	condition.Set(&waiting.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionFalse, hivev1.ReasonSecretNotFound, `the Secret "creds" does not exist`, now)
	return []client.Object{stopped, hung, disk, again, old, stuck, marked, waiting}
}

func TestExplanations(t *testing.T) {
	for name, lines := range map[string][]string{
		"explain":         {"explain pool dev", "explain pool bare -n team-a", "explain claim bob", "explain claim alice", "explain cluster dev-3cccc", "explain cluster alice", "explain cluster pet"},
		"explain-formats": {"explain pool dev -o json", "explain pool dev -o name", "explain claim bob -o yaml", "explain claim bob -o name", "explain cluster dev-2bbbb -o name"},
		"explain-not":     {"explain pool nope", "explain claim nope", "explain cluster nope", "explain dev", "explain pool", "explain"},
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, transcript(newRig(t, interceptor.Funcs{}, world()...), lines)) })
	}
	compare(t, "explain-troubles", transcript(newRig(t, interceptor.Funcs{}, troubles()...), []string{
		"explain pool broken", "explain pool full", "explain pool lacking", "explain pool cramped", "explain pool leaving",
		"explain claim second", "explain claim sleeper", "explain claim lost", "explain claim orphan", "explain claim tenant",
		"explain cluster broken-2hung", "explain cluster broken-6stuck",
	}))
}

func TestAnExplanationFitsTheTerminal(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, troubles()...)
	r.width = 100
	if code := r.run("explain", "pool", "broken"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	told, _, _ := strings.Cut(r.stdout.String(), "WHAT TO DO")
	for line := range strings.Lines(told) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > r.width {
			t.Errorf("a line has %d characters: %s", n, line)
		}
	}
}

func TestWhatTheExplanationOfAPoolIsForPrograms(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, troubles()...)
	r.run("explain", "pool", "broken", "-o", "json")
	var v struct {
		Clusters []struct {
			Name  string
			Cause pool.Cause
		}
		ToDo []struct{ Of, Command string }
	}
	if err := json.Unmarshal([]byte(r.stdout.String()), &v); err != nil {
		t.Fatal(err)
	}
	causes := map[string]pool.Cause{}
	for _, c := range v.Clusters {
		if c.Cause != "" {
			causes[c.Name] = c.Cause
		}
	}
	if causes["broken-1fail"] != pool.InstallFailed || causes["broken-2hung"] != pool.ResumeTimedOut || len(causes) != 2 {
		t.Errorf("broken are %v", causes)
	}
}

// What explain says of a pool's steps is what the controller would write into its status.
func TestExplainDecidesAsTheControllerDoes(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, troubles()...)
	for name, want := range map[string]string{
		"full": "maxSize is 2", "cramped": "400 MB of memory are needed for each cluster", "lacking": "see MissingDependencies",
	} {
		r.run("explain", "pool", name, "-o", "json")
		var v struct{ Plan string }
		if err := json.Unmarshal([]byte(r.stdout.String()), &v); err != nil || !strings.Contains(v.Plan, want) {
			t.Errorf("the plan of pool %s is %q, %v: it should name %q", name, v.Plan, err, want)
		}
	}
}
