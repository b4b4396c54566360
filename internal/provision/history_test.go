package provision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

// history is a cluster's life, played at random: executors that work, wait and
// fail, users that change their minds, a process that dies between any two
// steps. It complains about what must never happen.
type history struct {
	t    *testing.T
	dice *rand.Rand
	// facts are what is stored.
	facts Snapshot
	// alive reports whether a cluster exists, and id which one.
	alive bool
	id    string
	// ended is how installs ended, dead what was destroyed.
	ended   map[string]Outcome
	dead    map[string]bool
	secrets bool
	gone    bool
	log     []string
}

func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{
				t: t, dice: rand.New(rand.NewPCG(seed, 1)), ended: map[string]Outcome{}, dead: map[string]bool{},
				facts: snapshot(func(s *Snapshot) { s.Cluster.Marked, s.Cluster.HasFinalizer = false, false }),
			}
			h.play(h.dice.IntN(80))
			h.facts.Cluster.Deleting, h.facts.Cluster.DeletedAt = true, h.facts.Now
			h.facts.Cluster.BundleRefused = h.dice.IntN(4) == 0
			h.meddleWithBundle()
			// What carries no finalizer goes at once.
			h.gone = !h.facts.Cluster.HasFinalizer
			h.play(400)
			if !h.gone || h.alive {
				t.Errorf("gone: %v, alive: %v\n%s", h.gone, h.alive, strings.Join(h.log, "\n"))
			}
		})
	}
}

func (h *history) play(passes int) {
	for i := 0; i < passes && !h.gone && !h.t.Failed(); i++ {
		h.meddle()
		next := h.pass()
		h.facts.Now = h.facts.Now.Add(max(time.Second, next))
	}
}

// meddle is what users and machines do meanwhile.
func (h *history) meddle() {
	limit := h.dice.IntN(6)
	switch c := &h.facts.Cluster; h.dice.IntN(40) {
	case 0:
		c.Limit = &limit
	case 1:
		c.Limit = nil
	case 2:
		h.facts.Needs.ImageSet.Found = !h.facts.Needs.ImageSet.Found
	case 4:
		h.meddleWithBundle()
	case 3:
		// The namespace is being deleted, and takes attempts with it.
		if c.Deleting {
			h.facts.Attempts = nil
		}
	}
}

// meddleWithBundle requests a bundle of a deleted cluster, or stores it.
func (h *history) meddleWithBundle() {
	if c := &h.facts.Cluster; c.BundleDue.IsZero() && c.Deleting {
		c.BundleDue = c.DeletedAt.Add(2 * time.Minute)
	} else {
		c.BundleDue = time.Time{}
	}
}

// pass decides and acts as the controller does, and may die.
func (h *history) pass() time.Duration {
	s := h.facts
	s.Destroy = map[string]Answer{}
	for round := 0; ; round++ {
		if round > 5 {
			h.complain("the pass does not end")
			return 0
		}
		s.Cluster, s.Attempts, s.Deprovision = h.facts.Cluster, slices.Clone(h.facts.Attempts), h.facts.Deprovision
		plan := Decide(s)
		for _, step := range plan.Steps {
			h.log = append(h.log, step.String())
			h.do(&s, step)
			if h.dice.IntN(12) == 0 {
				h.log = append(h.log, "crash")
				return 0
			}
		}
		if plan.NeedsAnswers() {
			continue
		}
		h.report(plan)
		for _, step := range plan.Last {
			h.log = append(h.log, "last "+step.String())
			h.do(&s, step)
		}
		return plan.Next
	}
}

func (h *history) report(plan Plan) {
	for _, c := range plan.Conditions {
		if c.Type != hivev1.ClusterDeprovisionLaunchError {
			continue
		}
		at := &h.facts.Cluster.DestroyFailedAt
		switch failing := c.Status == corev1.ConditionTrue && c.Reason == ReasonDestroyFailed; {
		case !failing:
			*at = time.Time{}
		case at.IsZero():
			*at = h.facts.Now
		}
	}
}

func (h *history) do(s *Snapshot, step Step) {
	c := &h.facts.Cluster
	switch step.Do {
	case EnsureFinalizer:
		c.Marked, c.HasFinalizer = true, true
	case RecordAttempt:
		h.record(s, step)
	case PublishMetadata:
		c.InfraID = step.InfraID
	case Install:
		s.Install = h.install(step)
	case StoreCredentials:
		h.secrets = true
	case MarkInstalled:
		h.must(h.secrets && h.alive, "installed without a cluster or its Secrets")
		c.Installed = true
	case CompleteAttempt:
		h.attempt(step).Stage = hivev1.StageComplete
	case FailAttempt:
		a := h.attempt(step)
		a.Stage, a.FailedAt = hivev1.StageFailed, h.facts.Now
	case Destroy:
		s.Destroy[step.InfraID] = h.destroy(step)
	case RecordCleanup:
		h.attempt(step).Destroyed = true
	case DeleteAttempt:
		h.must(h.attempt(step).Destroyed, "forgotten before it was destroyed")
		h.facts.Attempts = slices.DeleteFunc(h.facts.Attempts, func(a Attempt) bool { return a.Number == step.Attempt })
	case CreateDeprovision:
		h.facts.Deprovision.Exists = true
	case CompleteDeprovision:
		h.facts.Deprovision.Completed = true
	case RemoveFinalizer:
		h.must(!h.alive, "let go while something is alive")
		h.gone = true
	}
}

func (h *history) record(s *Snapshot, step Step) {
	if h.dice.IntN(5) == 0 {
		s.Prepare = &Answer{Outcome: Waiting, After: time.Minute}
		return
	}
	h.must(!h.alive, "recorded while another attempt is alive")
	h.facts.Attempts = append(h.facts.Attempts, Attempt{
		Number: step.Attempt, Name: step.Name, Stage: hivev1.StageProvisioning, InfraID: fmt.Sprintf("x%d", step.Attempt),
	})
}

func (h *history) install(step Step) *Answer {
	h.must(h.facts.Cluster.InfraID == step.InfraID, "installed what the cluster does not name")
	h.must(!h.dead[step.InfraID], "installed what was destroyed")
	h.must(!h.alive || h.id == step.InfraID, "two clusters at a time")
	h.alive, h.id = true, step.InfraID
	if _, ended := h.ended[step.InfraID]; !ended {
		o := []Outcome{Running, Waiting, Refused, Failed, Succeeded}[h.dice.IntN(5)]
		if o != Succeeded && o != Failed {
			return &Answer{Outcome: o, After: time.Minute}
		}
		h.ended[step.InfraID] = o
	}
	return &Answer{Outcome: h.ended[step.InfraID]}
}

func (h *history) destroy(step Step) Answer {
	c := h.facts.Cluster
	h.must(c.Deleting || h.ended[step.InfraID] != Succeeded, "destroyed what is wanted")
	o := []Outcome{Running, Waiting, Failed, Succeeded}[h.dice.IntN(4)]
	if o == Succeeded {
		h.dead[step.InfraID] = true
		h.alive = h.alive && h.id != step.InfraID
	}
	return Answer{Outcome: o, After: time.Minute}
}

func (h *history) attempt(step Step) *Attempt {
	i := slices.IndexFunc(h.facts.Attempts, func(a Attempt) bool { return a.Number == step.Attempt })
	return &h.facts.Attempts[i]
}

func (h *history) must(holds bool, what string) {
	h.t.Helper()
	if !holds {
		h.complain(what)
	}
}

func (h *history) complain(what string) {
	h.t.Helper()
	h.t.Errorf("%s\n%s", what, strings.Join(h.log, "\n"))
}
