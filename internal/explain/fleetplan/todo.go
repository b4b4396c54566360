package fleetplan

import "hotspare.io/hotspare/internal/explain/remedy"

// Task is a remedy, and the types, data planes and instances that it is for.
type Task = remedy.Task

// ListTasks returns what a person can do about the region, each remedy once with all that it is
// for; and, separately, what only needs time.
func (r Region) ListTasks() (act, wait []remedy.Task) {
	var list remedy.TaskList
	for _, p := range r.DataPlanes { // lost clusters come first
		if p.Gone {
			list.AddRemedy(p.Name, p.ToDo)
		}
	}
	for _, f := range r.Failures {
		list.AddRemedy(f.Name, f.ToDo)
	}
	for _, t := range r.Types {
		list.AddRemedy(t.Name, t.ToDo)
	}
	for _, p := range r.DataPlanes {
		if !p.Gone {
			list.AddRemedy(p.Name, p.ToDo)
		}
	}
	for _, i := range r.Instances {
		list.AddRemedy(i.Name, i.ToDo)
	}
	return list.Act, list.Wait
}
