package exec

import (
	"fmt"
	"math"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

const megabyte = 1 << 20

// shortage is a lack of capacity that a recipe has reported.
type shortage struct {
	until   time.Time
	problem string
}

// recordShortage remembers whether the platform of a recipe has capacity for another cluster.
func (e *Executor) recordShortage(name string, next Next) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch next.Phase {
	case runner.NoRoom:
		e.noRoom[name] = shortage{until: next.RetryAt, problem: next.Problem}
	case runner.Created:
		delete(e.noRoom, name)
	}
}

// CountFits returns how many more clusters of a platform fit, and explains the limit as text; nil
// means no limit.
func (e *Executor) CountFits(p hivev1.Platform) (*int, string) {
	if p.Exec == nil {
		return nil, ""
	}
	var needs recipe.Needs // of no importance where a cluster uses no memory of this computer
	if e.Measure != nil {
		r, err := e.Catalog.FindRecipe(e.workContext, runner.Lookup{Platform: p.Exec})
		if err != nil {
			return nil, "" // the pool reports it as a missing dependency
		}
		needs = r.Needs
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, found := e.noRoom[p.Exec.Recipe]; found && e.Clock.Now().Before(s.until) {
		return new(int), s.problem
	}
	n, why := e.countFits(needs)
	if n == math.MaxInt {
		return nil, ""
	}
	return &n, why
}

// countFits returns how many clusters fit on this computer. The caller holds e.mu.
func (e *Executor) countFits(needs recipe.Needs) (int, string) {
	if e.Measure == nil || needs.Memory.IsZero() && needs.Disk.IsZero() {
		return math.MaxInt, ""
	}
	memory, disk, err := e.Measure()
	if err != nil {
		return math.MaxInt, "" // the recipe itself fails if it lacks resources
	}
	for _, j := range e.installs {
		if !j.isDone() {
			memory, disk = memory-j.needs.Memory.Value(), disk-j.needs.Disk.Value()
		}
	}
	return countNeeds(needs, memory, disk)
}

// countNeeds returns how many times needs fit into memory and disk space, in bytes, and names the
// resource that limits it.
func countNeeds(needs recipe.Needs, memory, disk int64) (int, string) {
	byMemory, byDisk := divide(memory, needs.Memory.Value()), divide(disk, needs.Disk.Value())
	if byMemory <= byDisk {
		return byMemory, fmt.Sprintf("%d MB of memory are needed for each and %s are available: hibernate or delete clusters, or stop other programs",
			needs.Memory.Value()/megabyte, formatRounded(memory))
	}
	return byDisk, fmt.Sprintf("%d MB of disk space are needed for each and %s are free: delete clusters or other files",
		needs.Disk.Value()/megabyte, formatRounded(disk))
}

// formatRounded formats bytes as the local platform does: in whole gigabytes, rounded down, or in hundreds
// of megabytes below one gigabyte. The text of a condition then changes rarely.
func formatRounded(bytes int64) string {
	mb := max(bytes, 0) / megabyte
	if mb >= 1000 {
		return fmt.Sprintf("about %d GB", mb/1000)
	}
	return fmt.Sprintf("about %d MB", mb/100*100)
}

func divide(have, need int64) int {
	if need <= 0 {
		return math.MaxInt
	}
	return int(max(have, 0) / need)
}

// confirmCapacity returns fault.Capacity if a cluster does not fit on this computer now. The caller
// holds e.mu.
func (e *Executor) confirmCapacity(r *recipe.Recipe) error {
	n, why := e.countFits(r.Needs)
	if n > 0 {
		return nil
	}
	return fault.NewCapacity(retryAfterNoRoom, "there is no room for a cluster of recipe %s: %s", r.Name, why)
}
