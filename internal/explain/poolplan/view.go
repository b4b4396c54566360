package poolplan

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
func (e Evaluation) BuildView(now time.Time, formatCommand remedy.CommandFormatter) View {
	v := View{
		Now: now, Namespace: e.Pool.Namespace, Name: e.Pool.Name,
		Steps: []pool.Step{}, Clusters: []Cluster{}, Claims: []Claim{}, Amiss: []hivev1.Condition{}, ToDo: []Action{},
	}
	v.Policy = DescribePoolPolicy(e.Policy)
	if e.Pool.Unreadable != "" {
		v.Plan = "not reconciled: " + e.Pool.Unreadable
		v.ToDo = append(v.ToDo, Action{e.Pool.Name, *e.editPoolRemedy("Correct the field: until then hotspare does nothing for this pool.", formatCommand)})
		return v
	}
	v.Plan, v.Steps, v.Counts, v.Amiss = e.SummarizePlan(), emptyIfNil(e.Plan.Steps), e.CountMembersAndClaims(), emptyIfNil(e.UnhealthyConditions())
	if e.Plan.Next > 0 {
		v.Next = e.Plan.Next.Round(time.Second).String()
	}
	for _, do := range e.poolRemedies(formatCommand) {
		v.ToDo = append(v.ToDo, Action{e.Pool.Name, do})
	}
	for _, c := range e.PlannedClusters() {
		w := e.ExplainCluster(c, formatCommand)
		v.Clusters = append(v.Clusters, w)
		v.addRemedy(w.Name, w.ToDo)
	}
	for _, c := range e.unservedClaims() {
		w := e.ExplainClaim(c, formatCommand)
		v.Claims = append(v.Claims, w)
		v.addRemedy(w.Name, w.ToDo)
	}
	return v
}

// addRemedy adds the remedy for a cluster or a claim, unless the pool has one with the same command.
func (v *View) addRemedy(name string, do *remedy.Remedy) {
	isOfPool := func(a Action) bool { return a.Of == v.Name && do.Command != "" && a.Command == do.Command }
	if do != nil && !slices.ContainsFunc(v.ToDo, isOfPool) {
		v.ToDo = append(v.ToDo, Action{name, *do})
	}
}

func (e Evaluation) findMember(name string) pool.Member {
	i := slices.IndexFunc(e.members, func(m pool.Member) bool { return m.Name == name })
	if i < 0 {
		return pool.Member{}
	}
	return e.members[i]
}

// stepForCluster returns the plan's step for a cluster; the zero Step if there is none.
func (e Evaluation) stepForCluster(cluster string) pool.Step {
	i := slices.IndexFunc(e.Plan.Steps, func(s pool.Step) bool { return s.Cluster == cluster })
	if i < 0 {
		return pool.Step{}
	}
	return e.Plan.Steps[i]
}

// ExplainCluster explains the state of a cluster in the pool, and its next change.
func (e Evaluation) ExplainCluster(c PlannedCluster, formatCommand remedy.CommandFormatter) Cluster {
	m, cd := e.findMember(c.Name), e.Clusters[c.Name]
	v := Cluster{PlannedCluster: c, Created: m.Created}
	if c.Phase == pool.Broken {
		v.Cause = m.DefectCause(&e.Facts.Settings, e.Facts.Now)
	}
	parts := []string{e.describeState(v, m, cd)}
	if fate := e.describeNextChange(v, m); fate != "" {
		parts = append(parts, fate)
	}
	v.Message = strings.Join(parts, "; ")
	v.ToDo = e.clusterRemedy(v, m, cd, formatCommand)
	return v
}

// describeState describes the state of a cluster in its pool.
func (e Evaluation) describeState(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment) string {
	switch v.Phase {
	case pool.Deleting:
		return "it is being deleted" + reasonSuffix(conditionMessage(cd, hivev1.ClusterDeprovisionLaunchError, corev1.ConditionTrue))
	case pool.Removed:
		return "it is marked for removal"
	case pool.Unreadable:
		return "it is not reconciled until it can be read: " + m.Unreadable
	case pool.Claimed:
		return e.describeClaimed(m, cd)
	case pool.Broken:
		return e.describeBroken(v.Cause, m, cd)
	case pool.Installing:
		return e.describeInstalling(m, cd)
	case pool.Assignable:
		if e.stepForCluster(v.Name).Verb != "" {
			return "it runs"
		}
		return "it runs: the next claim gets it"
	}
	return e.describeStandby(v, m, cd)
}

// describeStandby describes what a standby cluster does.
func (e Evaluation) describeStandby(v Cluster, m pool.Member, cd *hivev1.ClusterDeployment) string {
	switch failing := conditionMessage(cd, hivev1.ClusterHibernating, corev1.ConditionFalse); {
	case m.PowerFailed && m.Wanted == pool.Running:
		return "it does not start" + reasonSuffix(failing) + "; hotspare retries, and starts the next cluster in addition" + e.giveUpNote(m)
	case m.PowerFailed:
		return "it does not stop" + reasonSuffix(failing) + "; hotspare retries"
	case m.AwaitsSteps, m.AwaitsGates:
		return clusterstate.BootstrapOf(&m, cd, "").Message + e.giveUpNote(m)
	case m.Wanted == pool.Running:
		return "it resumes" + reasonSuffix(conditionMessage(cd, hivev1.ClusterReady, corev1.ConditionFalse)) + e.giveUpNote(m)
	case m.Wanted == pool.Hibernating && cd.Status.PowerState != hivev1.StatusHibernating:
		return "it is stopping"
	case m.Wanted == pool.Hibernating && e.stepForCluster(v.Name).Verb != "":
		return "it hibernates"
	case m.Wanted == pool.Hibernating:
		return "it hibernates, and resumes when it is needed"
	default:
		return "it is installed, and its power state is not set yet"
	}
}

// giveUpNote says when a cluster that does not come up will count as broken.
func (e Evaluation) giveUpNote(m pool.Member) string {
	at := m.GiveUpTime(&e.Facts.Settings, e.Facts.Now)
	if at.IsZero() {
		return ""
	}
	return "; it counts as broken in " + duration.HumanDuration(at.Sub(e.Facts.Now))
}

func (e Evaluation) describeClaimed(m pool.Member, cd *hivev1.ClusterDeployment) string {
	words := "claim " + m.Claim + " has it"
	if state := clusterstate.OfCluster(cd); state != clusterstate.Running {
		words += ", and it is " + strings.ToLower(state)
	}
	if c := e.Claims[m.Claim]; c != nil {
		if at := clusterstate.ClaimExpiryTime(c); at.After(e.Facts.Now) {
			words += "; the claim expires in " + duration.HumanDuration(at.Sub(e.Facts.Now))
		}
	}
	return words
}

// describeBroken describes what is wrong with a broken cluster.
func (e Evaluation) describeBroken(cause pool.Cause, m pool.Member, cd *hivev1.ClusterDeployment) string {
	limit := e.Facts.Settings.ResumeTimeout
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

func (e Evaluation) describeInstalling(m pool.Member, cd *hivev1.ClusterDeployment) string {
	if lacks := conditionMessage(cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse); lacks != "" {
		return "it cannot be installed yet" + reasonSuffix(lacks)
	}
	if m.Failing {
		return "its last install attempt failed, and is retried" + reasonSuffix(conditionMessage(cd, hivev1.ClusterProvisionFailed, corev1.ConditionTrue))
	}
	return "it is being installed"
}

// describeNextChange describes what happens to a cluster in this plan, or later.
func (e Evaluation) describeNextChange(v Cluster, m pool.Member) string {
	step := e.stepForCluster(v.Name)
	switch {
	case step.Verb == pool.Bind:
		return fmt.Sprintf("claim %s gets it now: %s", step.Claim, step.Reason)
	case step.Verb == pool.Start:
		return e.describePowerChange("it is started", v) + e.startReason(step)
	case step.Verb == pool.Hibernate:
		return e.describePowerChange("it is hibernated", v) + ": " + step.Reason
	case step.Verb == pool.Bootstrap:
		return "it takes the steps of the bootstrap now: " + step.Reason
	case step.Verb == pool.Delete && v.Cause != "":
		return "it is deleted now, and a new cluster replaces it"
	case step.Verb == pool.Delete:
		return "it is deleted now: " + step.Reason
	case m.Unreadable != "":
		return ""
	case v.Cause != "" || v.Phase == pool.Removed:
		return "its deletion waits: " + e.deletionLimit()
	case v.Stale:
		return e.describeStaleReplacement(v, m)
	case m.PredatesSteps:
		return e.describeTurn()
	default:
		return ""
	}
}

// describeTurn says when a cluster that is older than the steps of its pool takes them.
func (e Evaluation) describeTurn() string {
	if e.Plan.Report.StepsFail {
		return "it takes the steps of the bootstrap after a new cluster has completed them: they have failed in another one"
	}
	return "it is older than the steps of the bootstrap, and takes them when the pool lets it"
}

// describeStaleReplacement says when a stale cluster is replaced.
func (e Evaluation) describeStaleReplacement(v Cluster, m pool.Member) string {
	switch {
	case v.Phase == pool.Installing && e.Facts.Settings.Blocked == "":
		return m.StaleReason(&e.Facts.Settings, "it is being created from an older version of the pool") + "; its install continues because a claim waits for it"
	case slices.Contains([]pool.Phase{pool.Installing, pool.Standby, pool.Assignable}, v.Phase):
		return m.StaleReason(&e.Facts.Settings, "it was created from an older version of the pool") + "; it is replaced when no claim waits and nothing else is in progress"
	}
	return ""
}

// describePowerChange describes a planned power change; a cluster that is being installed carries
// it out later.
func (e Evaluation) describePowerChange(what string, v Cluster) string {
	if v.Phase == pool.Installing {
		return what + " when it is installed"
	}
	return what + " now"
}

// startReason explains why a cluster is started; the step's own reason for a spare is only the name
// of a field.
func (e Evaluation) startReason(step pool.Step) string {
	if step.Cause == pool.BelowRunningCount {
		return fmt.Sprintf(": the pool keeps %d running", min(e.Facts.Settings.RunningCount, e.Facts.Settings.Size))
	}
	return ": " + step.Reason
}

// deletionLimit describes what a deletion waits for.
func (e Evaluation) deletionLimit() string {
	n := e.Facts.Settings.MaxConcurrent
	switch {
	case n == nil:
		return "maxConcurrent is not set"
	case e.Plan.Report.Busy == "":
		return "maxConcurrent is " + strconv.Itoa(*n)
	default:
		return fmt.Sprintf("maxConcurrent is %d (%s)", *n, e.Plan.Report.Busy)
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
