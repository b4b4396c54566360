package clusterstate

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var dying = metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}

// cluster is one whose power is wanted and is so.
func cluster(wants hivev1.PowerState, is string) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{}
	cd.Spec.Installed, cd.Spec.PowerState, cd.Status.PowerState = true, wants, is
	return cd
}

func with(cd *hivev1.ClusterDeployment, kind string, status corev1.ConditionStatus, reason string) *hivev1.ClusterDeployment {
	cd.Status.Conditions = append(cd.Status.Conditions, hivev1.Condition{Type: kind, Status: status, Reason: reason})
	return cd
}

func raw(cd *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	cd.Spec.Installed = false
	return cd
}

func deleted(cd *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	cd.ObjectMeta = dying
	return cd
}

func member(cd *hivev1.ClusterDeployment, claim string) *hivev1.ClusterDeployment {
	cd.Namespace = "dev-1"
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "team-a", PoolName: "dev", ClaimName: claim}
	return cd
}

func awake() *hivev1.ClusterDeployment {
	return cluster(hivev1.PowerRunning, hivev1.StatusRunning)
}

func asleep() *hivev1.ClusterDeployment {
	return cluster(hivev1.PowerHibernating, hivev1.StatusHibernating)
}

func TestTheDepthOfASleep(t *testing.T) {
	at := func(cd *hivev1.ClusterDeployment, depth string, finished bool) *hivev1.ClusterDeployment {
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerHibernating, Depth: depth}
		if finished {
			cd.Status.PowerTransition.FinishedAt = &metav1.Time{}
		}
		return cd
	}
	for name, c := range map[string]struct {
		cluster *hivev1.ClusterDeployment
		want    string
	}{
		"one that is frozen":             {at(asleep(), "freeze", true), "Hibernating (freeze)"},
		"one that is stopped":            {at(asleep(), "stop", true), Hibernating},
		"one of an earlier version":      {asleep(), Hibernating},
		"one that wakes up":              {at(cluster(hivev1.PowerRunning, hivev1.StatusHibernating), "freeze", true), Resuming},
		"one that is about to go deeper": {at(cluster(hivev1.PowerHibernating, hivev1.ReasonStopping), "", false), Stopping},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DescribeCluster(c.cluster); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHowAClusterStands(t *testing.T) {
	for name, c := range map[string]struct {
		cluster *hivev1.ClusterDeployment
		want    string
	}{
		"one that runs runs":                              {awake(), Running},
		"one that sleeps hibernates":                      {asleep(), Hibernating},
		"one that is woken resumes":                       {cluster(hivev1.PowerRunning, hivev1.StatusHibernating), Resuming},
		"one of which nothing is known yet resumes":       {cluster("", ""), Resuming},
		"one that is put to sleep stops":                  {cluster(hivev1.PowerHibernating, hivev1.StatusRunning), Stopping},
		"one that is not installed is being":              {raw(awake()), Installing},
		"one whose install has stopped failed":            {with(raw(awake()), hivev1.ClusterProvisionStopped, corev1.ConditionTrue, ""), Failed},
		"one whose install goes on has not":               {with(raw(awake()), hivev1.ClusterProvisionStopped, corev1.ConditionFalse, ""), Installing},
		"machines that do not start are a failure":        {with(awake(), hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart), Failed},
		"and so are those that do not stop":               {with(asleep(), hivev1.ClusterHibernating, corev1.ConditionTrue, hivev1.ReasonFailedToStop), Failed},
		"another reason of that condition is none":        {with(asleep(), hivev1.ClusterHibernating, corev1.ConditionTrue, hivev1.ReasonHibernating), Hibernating},
		"one that is deleted is no more than that":        {deleted(with(awake(), hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "")), Deleting},
		"while it is installed nothing is said of power":  {raw(with(asleep(), hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonFailedToStart)), Installing},
		"one that cannot sleep runs, whatever is wanted":  {with(cluster(hivev1.PowerHibernating, hivev1.StatusRunning), hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonUnsupported), Running},
		"or does not run yet":                             {with(cluster(hivev1.PowerHibernating, "WaitingForNodes"), hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonUnsupported), Resuming},
		"one that wants sleep and says nothing is on its": {cluster(hivev1.PowerHibernating, ""), Stopping},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfCluster(c.cluster); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func claim(namespace, reason string) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{}
	c.Spec.Namespace = namespace
	if reason != "" {
		status := corev1.ConditionFalse
		if reason == hivev1.ReasonRunning {
			status = corev1.ConditionTrue
		}
		c.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimClusterRunning, Status: status, Reason: reason}}
	}
	return c
}

func TestHowAClaimStands(t *testing.T) {
	released := claim("dev-1", hivev1.ReasonRunning)
	released.ObjectMeta = dying
	for name, c := range map[string]struct {
		claim  *hivev1.ClusterClaim
		want   string
		usable bool
	}{
		"one without a cluster waits":                {claim("", ""), Waiting, false},
		"a condition of before does not change that": {claim("", hivev1.ReasonRunning), Waiting, false},
		"one that has just got one is assigned":      {claim("dev-1", ""), Assigned, false},
		"one whose cluster runs runs":                {claim("dev-1", hivev1.ReasonRunning), Running, true},
		"one whose cluster sleeps hibernates":        {claim("dev-1", hivev1.ReasonHibernating), Hibernating, false},
		"one whose cluster is woken resumes":         {claim("dev-1", hivev1.ReasonResuming), Resuming, false},
		"one whose cluster stops stops":              {claim("dev-1", hivev1.ReasonStopping), Stopping, false},
		"one whose cluster does not stop has failed": {claim("dev-1", hivev1.ReasonFailedToStop), Failed, false},
		"one whose cluster goes has lost it":         {claim("dev-1", hivev1.ReasonClusterDeleting), Lost, false},
		"and so has one whose cluster is gone":       {claim("dev-1", hivev1.ReasonClusterDeleted), Lost, false},
		"one that is deleted is being released":      {released, Releasing, true}, // it can still be used, until it is gone
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfClaim(c.claim); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := IsClaimUsable(c.claim); got != c.usable {
				t.Errorf("usable: %t", got)
			}
		})
	}
}

func TestHomeIsWhereAPersonLooks(t *testing.T) {
	if got := HomeNamespace(member(awake(), "")); got != "team-a" {
		t.Errorf("a member is looked for in %s", got)
	}
	own := awake()
	own.Namespace = "pets"
	if got := HomeNamespace(own); got != "pets" {
		t.Errorf("one of no pool is looked for in %s", got)
	}
	if got := PoolReference(own); got != (hivev1.ClusterPoolReference{}) {
		t.Errorf("one of no pool is of %+v", got)
	}
}

// A cluster counts once: in the phase that its pool has it in.
func TestCount(t *testing.T) {
	failed := with(raw(awake()), hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "")
	marked := member(awake(), "")
	marked.Annotations = map[string]string{hivev1.AnnotationRemove: "true"}
	clusters := []hivev1.ClusterDeployment{
		*member(awake(), ""), *member(asleep(), ""), *member(cluster(hivev1.PowerRunning, ""), ""), *member(cluster(hivev1.PowerHibernating, ""), ""),
		*member(raw(awake()), ""), *member(failed.DeepCopy(), ""),
		*member(awake(), "alice"), *member(failed.DeepCopy(), "bob"), // what is claimed is somebody's, however it stands
		*member(deleted(awake()), "eve"), *marked,
	}
	for i := range clusters {
		clusters[i].Namespace, clusters[i].Name = fmt.Sprint("dev-", i), fmt.Sprint("dev-", i)
	}
	claims := []hivev1.ClusterClaim{*claim("", ""), *claim("dev-1", hivev1.ReasonRunning), {ObjectMeta: dying}}
	p := hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "dev"}}
	want := Tally{Assignable: 1, Standby: 3, Installing: 1, Broken: 1, Claimed: 2, Deleting: 1, Marked: 1, Waiting: 1}
	got := CountPool(&p, clusters, claims, time.Now())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sum := got.Assignable + got.Standby + got.Installing + got.Broken + got.Claimed + got.Deleting + got.Marked + got.Unreadable; sum != len(clusters) {
		t.Errorf("%d clusters are counted %d times", len(clusters), sum)
	}
}

func TestEveryStateOfAClusterIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range ClusterStates {
		listed[s] = true
	}
	for _, wants := range []hivev1.PowerState{"", hivev1.PowerRunning, hivev1.PowerHibernating} {
		for _, is := range []string{"", hivev1.StatusRunning, hivev1.StatusHibernating} {
			for n, cd := range []*hivev1.ClusterDeployment{cluster(wants, is), raw(cluster(wants, is)), deleted(cluster(wants, is))} {
				if s := OfCluster(cd); !listed[s] {
					t.Error(fmt.Sprint(wants, " ", is, " ", n), "stands as", s, "which is not in ClusterStates")
				}
			}
		}
	}
}
