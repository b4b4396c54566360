package poolforecast

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/pool"
)

// A View explains why a pool does what it does. hotspare explain pool -o json prints it:
// docs/cli.md describes it, and fields are only ever added.
type View struct {
	Now       time.Time          `json:"now"`
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Plan      string             `json:"plan"`
	Policy    string             `json:"policy,omitempty"`
	Next      string             `json:"next,omitempty"`
	Steps     []pool.Step        `json:"steps"`
	Counts    Census             `json:"counts"`
	Clusters  []Cluster          `json:"clusters"`
	Claims    []Claim            `json:"claims"`
	Amiss     []hivev1.Condition `json:"conditions"`
	ToDo      []Action           `json:"toDo"`
}

// A Cluster explains the state and the next change of one of the pool's clusters.
type Cluster struct {
	PlannedCluster
	Created time.Time `json:"created"`
	// Cause is why it is broken.
	Cause   pool.Cause     `json:"cause,omitempty"`
	Message string         `json:"message"`
	ToDo    *remedy.Remedy `json:"toDo,omitempty"`
}

// A Claim explains a claim that has no usable cluster.
type Claim struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Created time.Time `json:"created"`
	Cluster string    `json:"cluster,omitempty"`
	// Position is its place in the queue, Ready when a cluster for it is expected.
	Position int `json:"position,omitempty"`
	// Priority is its priority in effect.
	Priority int            `json:"priority,omitempty"`
	Ready    *time.Time     `json:"ready,omitempty"`
	Message  string         `json:"message"`
	ToDo     *remedy.Remedy `json:"toDo,omitempty"`
}

// An Action is a remedy and the object that it is for.
type Action struct {
	Of string `json:"of"`
	remedy.Remedy
}

// BuildView returns the view of a pool and of what was decided about it.
func (f Forecast) BuildView(now time.Time, formatCommand remedy.CommandFormatter) View {
	v := View{
		Now: now, Namespace: f.Pool.Namespace, Name: f.Pool.Name,
		Steps: []pool.Step{}, Clusters: []Cluster{}, Claims: []Claim{}, Amiss: []hivev1.Condition{}, ToDo: []Action{},
	}
	v.Policy = DescribePolicy(f.Policy)
	if f.Pool.Unreadable != "" {
		v.Plan = "not reconciled: " + f.Pool.Unreadable
		v.ToDo = append(v.ToDo, Action{f.Pool.Name, *f.editPoolRemedy("Correct the field: until then hotspare does nothing for this pool.", formatCommand)})
		return v
	}
	v.Plan, v.Steps, v.Counts, v.Amiss = f.SummarizePlan(), emptyIfNil(f.Plan.Steps), f.CountMembersAndClaims(), emptyIfNil(f.UnhealthyConditions())
	if f.Plan.Next > 0 {
		v.Next = f.Plan.Next.Round(time.Second).String()
	}
	for _, do := range f.poolRemedies(formatCommand) {
		v.ToDo = append(v.ToDo, Action{f.Pool.Name, do})
	}
	for _, c := range f.PlannedClusters() {
		w := f.ExplainCluster(c, formatCommand)
		v.Clusters = append(v.Clusters, w)
		v.addRemedy(w.Name, w.ToDo)
	}
	for _, c := range f.unservedClaims() {
		w := f.ExplainClaim(c, formatCommand)
		v.Claims = append(v.Claims, w)
		v.addRemedy(w.Name, w.ToDo)
	}
	return v
}

func (v *View) addRemedy(name string, do *remedy.Remedy) {
	if do != nil {
		v.ToDo = append(v.ToDo, Action{name, *do})
	}
}

func (f Forecast) findMember(name string) pool.Member {
	i := slices.IndexFunc(f.members, func(m pool.Member) bool { return m.Name == name })
	if i < 0 {
		return pool.Member{}
	}
	return f.members[i]
}

// stepForCluster returns the plan's step for a cluster; the zero Step if there is none.
func (f Forecast) stepForCluster(cluster string) pool.Step {
	i := slices.IndexFunc(f.Plan.Steps, func(s pool.Step) bool { return s.Cluster == cluster })
	if i < 0 {
		return pool.Step{}
	}
	return f.Plan.Steps[i]
}

// ExplainCluster explains the state of a cluster in the pool, and its next change.
func (f Forecast) ExplainCluster(c PlannedCluster, formatCommand remedy.CommandFormatter) Cluster {
	m, cd := f.findMember(c.Name), f.Clusters[c.Name]
	v := Cluster{PlannedCluster: c, Created: m.Created}
	if c.Phase == pool.Broken {
		v.Cause = m.DefectCause(&f.Facts.Settings, f.Facts.Now)
	}
	parts := []string{f.describeState(v, m, cd)}
	if fate := f.describeNextChange(v, m); fate != "" {
		parts = append(parts, fate)
	}
	v.Message = strings.Join(parts, "; ")
	v.ToDo = clusterRemedy(v, m, cd, formatCommand)
	return v
}

// describeState describes the state of a cluster in its pool.
func (f Forecast) describeState(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment) string {
	switch v.Phase {
	case pool.Deleting:
		return "it is being deleted" + reasonSuffix(conditionMessage(cd, hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue))
	case pool.Removed:
		return "it is marked for removal"
	case pool.Unreadable:
		return "it is not reconciled until it can be read: " + m.Unreadable
	case pool.Claimed:
		return f.describeClaimed(m, cd)
	case pool.Broken:
		return f.describeBroken(v.Cause, m, cd)
	case pool.Installing:
		return f.describeInstalling(m, cd)
	case pool.Assignable:
		if f.stepForCluster(v.Name).Verb != "" {
			return "it runs"
		}
		return "it runs: the next claim gets it"
	}
	return f.describeStandby(v, m, cd)
}

// describeStandby describes what a standby cluster does.
func (f Forecast) describeStandby(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment) string {
	switch failing := conditionMessage(cd, hivev1.ClusterHibernating, corev1.ConditionFalse); {
	case m.PowerFailed && m.Wanted == pool.Running:
		return "it does not start" + reasonSuffix(failing) + "; hotspare retries, and starts the next cluster in addition" + f.giveUpNote(m)
	case m.PowerFailed:
		return "it does not stop" + reasonSuffix(failing) + "; hotspare retries"
	case m.AwaitsSteps, m.AwaitsGates:
		return clusterstate.BootstrapOf(&m, cd, "").Message + f.giveUpNote(m)
	case m.Wanted == pool.Running:
		return "it resumes" + reasonSuffix(conditionMessage(cd, hivev1.ClusterReady, corev1.ConditionFalse)) + f.giveUpNote(m)
	case m.Wanted == pool.Hibernating && cd.Status.PowerState != hivev1.StatusHibernating:
		return "it is stopping"
	case m.Wanted == pool.Hibernating && f.stepForCluster(v.Name).Verb != "":
		return "it hibernates"
	case m.Wanted == pool.Hibernating:
		return "it hibernates, and resumes when it is needed"
	default:
		return "it is installed, and its power state is not set yet"
	}
}

// giveUpNote says when a cluster that does not come up will count as broken.
func (f Forecast) giveUpNote(m pool.Member) string {
	at := m.GiveUpTime(&f.Facts.Settings, f.Facts.Now)
	if at.IsZero() {
		return ""
	}
	return "; it counts as broken in " + duration.HumanDuration(at.Sub(f.Facts.Now))
}

func (f Forecast) describeClaimed(m pool.Member, cd *hivev1.ClusterDeployment) string {
	words := "claim " + m.Claim + " has it"
	if state := clusterstate.OfCluster(cd); state != clusterstate.Running {
		words += ", and it is " + strings.ToLower(state)
	}
	if c := f.Claims[m.Claim]; c != nil {
		if at := clusterstate.ClaimExpiryTime(c); at.After(f.Facts.Now) {
			words += "; the claim expires in " + duration.HumanDuration(at.Sub(f.Facts.Now))
		}
	}
	return words
}

// describeBroken describes what is wrong with a broken cluster.
func (f Forecast) describeBroken(cause pool.Cause, m pool.Member, cd *hivev1.ClusterDeployment) string {
	limit := f.Facts.Settings.ResumeTimeout
	switch cause {
	case pool.Displaced:
		return "broken: " + m.Displaced
	case pool.Withdrawn:
		return "broken: " + m.Withdrawn
	case pool.InstallFailed:
		return "broken: its install failed permanently" + reasonSuffix(conditionMessage(cd, hivev1.ClusterProvisionFailed, corev1.ConditionTrue))
	case pool.PowerFailed:
		return "broken: its machines could not be started or stopped" + reasonSuffix(conditionMessage(cd, hivev1.ClusterHibernating, corev1.ConditionFalse))
	case pool.ResumeTimedOut:
		return fmt.Sprintf("broken: it did not resume within %s", duration.HumanDuration(limit)) +
			reasonSuffix(conditionMessage(cd, hivev1.ClusterReady, corev1.ConditionFalse))
	case pool.Unreachable:
		return fmt.Sprintf("broken: it has been unreachable for more than %s", duration.HumanDuration(limit)) +
			reasonSuffix(conditionMessage(cd, hivev1.ClusterUnreachable, corev1.ConditionTrue))
	case pool.Unready:
		return fmt.Sprintf("broken: it has not been ready for more than %s", duration.HumanDuration(limit)) +
			reasonSuffix(conditionMessage(cd, hivev1.ClusterReady, corev1.ConditionFalse))
	case pool.StepFailed, pool.GateFailed:
		return "broken: " + clusterstate.BootstrapOf(&m, cd, cause).Message
	default:
		return "broken"
	}
}

func (f Forecast) describeInstalling(m pool.Member, cd *hivev1.ClusterDeployment) string {
	if lacks := conditionMessage(cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse); lacks != "" {
		return "it cannot be installed yet" + reasonSuffix(lacks)
	}
	if m.Failing {
		return "its last install attempt failed, and is retried" + reasonSuffix(conditionMessage(cd, hivev1.ClusterProvisionFailed, corev1.ConditionTrue))
	}
	return "it is being installed"
}

// describeNextChange describes what happens to a cluster in this plan, or later.
func (f Forecast) describeNextChange(v Cluster, m pool.Member) string {
	step := f.stepForCluster(v.Name)
	switch {
	case step.Verb == pool.Bind:
		return fmt.Sprintf("claim %s gets it now: %s", step.Claim, step.Reason)
	case step.Verb == pool.Start:
		return f.describePowerChange("it is started", v) + f.startReason(step)
	case step.Verb == pool.Hibernate:
		return f.describePowerChange("it is hibernated", v) + ": " + step.Reason
	case step.Verb == pool.Delete && v.Cause != "":
		return "it is deleted now, and a new cluster replaces it"
	case step.Verb == pool.Delete:
		return "it is deleted now: " + step.Reason
	case m.Unreadable != "":
		return ""
	case v.Cause != "" || v.Phase == pool.Removed:
		return "its deletion waits: " + f.deletionLimit()
	case v.Stale:
		return f.describeStaleReplacement(v, m)
	default:
		return ""
	}
}

// describeStaleReplacement says when a stale cluster is replaced.
func (f Forecast) describeStaleReplacement(v Cluster, m pool.Member) string {
	switch {
	case v.Phase == pool.Installing && f.Facts.Settings.Blocked == "":
		return m.StaleReason(&f.Facts.Settings, "it is being created from an older version of the pool") + "; its install continues because a claim waits for it"
	case slices.Contains([]pool.Phase{pool.Installing, pool.Standby, pool.Assignable}, v.Phase):
		return m.StaleReason(&f.Facts.Settings, "it was created from an older version of the pool") + "; it is replaced when no claim waits and nothing else is in progress"
	}
	return ""
}

// describePowerChange describes a planned power change; a cluster that is being installed carries
// it out later.
func (f Forecast) describePowerChange(what string, v Cluster) string {
	if v.Phase == pool.Installing {
		return what + " when it is installed"
	}
	return what + " now"
}

// startReason explains why a cluster is started; the step's own reason for a spare is only the name
// of a field.
func (f Forecast) startReason(step pool.Step) string {
	if step.Cause == pool.BelowRunningCount {
		return fmt.Sprintf(": the pool keeps %d running", min(f.Facts.Settings.RunningCount, f.Facts.Settings.Size))
	}
	return ": " + step.Reason
}

// deletionLimit describes what a deletion waits for.
func (f Forecast) deletionLimit() string {
	n := f.Facts.Settings.MaxConcurrent
	switch {
	case n == nil:
		return "maxConcurrent is not set"
	case f.Plan.Report.Busy == "":
		return "maxConcurrent is " + strconv.Itoa(*n)
	default:
		return fmt.Sprintf("maxConcurrent is %d (%s)", *n, f.Plan.Report.Busy)
	}
}

// reasonSuffix returns words as a suffix after a colon; "" if words is empty.
func reasonSuffix(words string) string {
	if words == "" {
		return ""
	}
	return ": " + strings.TrimRight(words, ".")
}

// conditionMessage returns the message of a condition while it has that status; otherwise "".
func conditionMessage(cd *hivev1.ClusterDeployment, typ string, status corev1.ConditionStatus) string {
	c := condition.Find(cd.Status.Conditions, typ)
	if c == nil || c.Status != status {
		return ""
	}
	return c.Message
}
