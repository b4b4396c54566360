package clusterpool_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

// leaveAlone lets time pass while users do nothing: settings stay as broken as they are,
// what is paused stays paused, finalizers are held, installs that cannot begin do not. It
// comes to rest all the same, and whatever waits says for what.
func (h *history) leaveAlone() {
	h.log.Addf("from here on users leave everything alone")
	h.clear()
	h.rest()
	h.checkNamed()
}

// checkNamed checks, at rest, that each pool that does not match its spec reports what it waits
// for, and that none reports that something is in progress.
func (h *history) checkNamed() {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		p := o.(*hivev1.ClusterPool)
		if p.DeletionTimestamp != nil && !slices.Contains(p.Finalizers, hivev1.FinalizerPool) {
			continue // only others hold it
		}
		c := condition.Find(p.Status.Conditions, hivev1.PoolProgressing)
		switch {
		case c == nil:
			h.judge.broke("at rest pool %s has no condition %s", p.Name, hivev1.PoolProgressing)
		case c.Status == corev1.ConditionTrue:
			h.judge.broke("at rest pool %s says that something is under way: %s", p.Name, p.Status.Plan)
		case c.Reason == hivev1.ReasonSettled:
			if lack := h.lack(p); lack != "" {
				h.judge.broke("at rest pool %s says that it is settled, and %s", p.Name, lack)
			}
		default:
			h.checkObstacles(p, c.Message)
		}
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterClaim{}) {
		h.checkClaimNamed(o.(*hivev1.ClusterClaim))
	}
}

// lack is what a pool has not of what it is asked to have; "" when nothing.
func (h *history) lack(p *hivev1.ClusterPool) string {
	count := h.count(p)
	if p.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	have := count[pool.Installing] + count[pool.Standby] + count[pool.Assignable]
	for _, phase := range []pool.Phase{pool.Installing, pool.Broken, pool.Deleting, pool.Removed} {
		if n := count[phase]; n > 0 {
			return fmt.Sprintf("%d of its clusters are %s", n, phase)
		}
	}
	if have != int(p.Spec.Size) {
		return fmt.Sprintf("it has %d unclaimed clusters of %d", have, p.Spec.Size)
	}
	if runs := min(p.Spec.RunningCount, p.Spec.Size); count[pool.Assignable] != int(runs) {
		return fmt.Sprintf("%d of its clusters run, %d should", count[pool.Assignable], runs)
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolAllClustersCurrent); c == nil || c.Status != corev1.ConditionTrue {
		return fmt.Sprintf("its clusters are not current: %+v", c)
	}
	return ""
}

// checkObstacles checks that what a pool says it waits for is so, and that each cluster
// which somebody must release is named.
func (h *history) checkObstacles(p *hivev1.ClusterPool, message string) {
	var causes []string
	add := func(is bool, words ...string) {
		if is {
			causes = append(causes, words...)
		}
	}
	add(p.Spec.MaxConcurrent != nil, "maxConcurrent is")
	add(p.Spec.MaxSize != nil, "maxSize is")
	add(len(p.Spec.Inventory) > 0, "no customization of the inventory is free")
	add(h.lacking(p) != "", h.lacking(p))
	for _, cd := range h.judge.members(p) {
		add(true, cd.Name)
	}
	if !slices.ContainsFunc(causes, func(words string) bool { return strings.Contains(message, words) }) {
		h.judge.broke("at rest pool %s waits for %q, of which nothing is so: %v", p.Name, message, causes)
	}
	for kind, names := range h.stuck(p) {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(message, name) }) {
			h.judge.broke("at rest %s clusters %v of pool %s wait for somebody, and the pool says %q", kind, names, p.Name, message)
		}
	}
}

// stuck are the clusters of a pool that get on when a user acts on them, and not before, by
// kind: the pool names one of each.
func (h *history) stuck(p *hivev1.ClusterPool) map[string][]string {
	out := map[string][]string{}
	for _, cd := range h.judge.members(p) {
		switch phase := phaseOf(cd, pool.Settings{}, h.clock.Now()); {
		case phase == pool.Installing && paused(cd):
			out["paused"] = append(out["paused"], cd.Name)
		case phase == pool.Deleting, phase == pool.Installing:
			out[string(phase)] = append(out[string(phase)], cd.Name)
		}
	}
	return out
}

// checkClaimNamed checks that a claim which waits says so.
func (h *history) checkClaimNamed(c *hivev1.ClusterClaim) {
	if c.DeletionTimestamp != nil || c.Spec.Namespace != "" {
		return
	}
	if pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending); pending == nil || pending.Status != corev1.ConditionTrue || pending.Message == "" {
		h.judge.broke("at rest claim %s waits and says %+v", c.Name, pending)
	}
}
