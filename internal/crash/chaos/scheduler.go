package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrStopped is what every call of a process answers after it was stopped.
var ErrStopped = errors.New("the process has been stopped")

// Scheduler lets the calls of tasks go on one at a time. It works inside of a
// synctest bubble: a task may have goroutines of its own; when all of them are
// parked at a call, or wait for one that is, the test chooses who goes on.
type Scheduler struct {
	mu      sync.Mutex
	serial  int
	waiting []*Call
	running map[*Task]bool
	ended   []*Task
}

// Process is something that can be killed: its tasks' calls fail from then on.
type Process struct {
	Name string
	dead bool // guarded by the scheduler's lock
}

// Task is one thing that a process does.
type Task struct {
	Process *Process
	Name    string
	// Err is how it ended.
	Err error
	// Listed is what its view has listed last, by kind; shared.
	Listed map[string][]client.Object

	id        int
	scheduler *Scheduler
}

// Call is one call of a task.
type Call struct {
	Task       *Task
	Verb, Kind string
	Key        types.NamespacedName
	// Data is what a patch says.
	Data []byte
	// Outcome is what it came to; nil until it was let go on.
	Outcome error

	proceed chan bool // true: do it, false: the process is dead
}

// String is the call and its outcome, in a line.
func (c *Call) String() string {
	text := fmt.Sprintf("%s/%d %s: %s %s %s", c.Task.Process.Name, c.Task.id, c.Task.Name, c.Verb, c.Kind, c.Key.Name)
	if c.Data != nil {
		text += " " + string(c.Data)
	}
	if c.Outcome != nil {
		text += ": " + describeOutcome(c.Outcome)
	}
	return text
}

func describeOutcome(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return err.Error()
}

type taskKey struct{}

// TaskFromContext is the task that ctx belongs to, or nil.
func TaskFromContext(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// WithoutTask is ctx for calls that are not parked: those of a test that looks at what
// a task has done.
func WithoutTask(ctx context.Context) context.Context {
	return context.WithValue(ctx, taskKey{}, (*Task)(nil))
}

// recordListed remembers what the task has listed.
func (t *Task) recordListed(kind string, objects []client.Object) {
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.Listed[kind] = objects
}

// StartTask starts a task of p. Wait until it has parked or ended.
func (s *Scheduler) StartTask(ctx context.Context, p *Process, name string, do func(context.Context) error) *Task {
	s.mu.Lock()
	s.serial++
	t := &Task{Process: p, Name: name, Listed: map[string][]client.Object{}, id: s.serial, scheduler: s}
	if s.running == nil {
		s.running = map[*Task]bool{}
	}
	s.running[t] = true
	s.mu.Unlock()
	go func() {
		err := callRecovering(context.WithValue(ctx, taskKey{}, t), do)
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Err = err
		delete(s.running, t)
		s.ended = append(s.ended, t)
	}()
	return t
}

// ErrPanic is wrapped by the error of a task that panicked.
var ErrPanic = errors.New("panic")

func callRecovering(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
		}
	}()
	return do(ctx)
}

// waitForTurn parks a call until it is let go on. Calls outside of tasks are not parked.
func waitForTurn(ctx context.Context, c Call, do func() error) error {
	t := TaskFromContext(ctx)
	if t == nil {
		return do()
	}
	c.Task, c.proceed = t, make(chan bool, 1)
	if !t.scheduler.parkCall(&c) || !<-c.proceed {
		return ErrStopped
	}
	c.Outcome = do()
	if t.scheduler.isProcessDead(t.Process) {
		return ErrStopped // it was done, and nobody learnt of it
	}
	return c.Outcome
}

func (s *Scheduler) parkCall(c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Task.Process.dead {
		return false
	}
	s.waiting = append(s.waiting, c)
	return true
}

func (s *Scheduler) isProcessDead(p *Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.dead
}

// WaitForCalls returns when all tasks have parked or ended: the calls that are parked, in
// an order that does not depend on how goroutines were scheduled, and the tasks
// that have ended since.
func (s *Scheduler) WaitForCalls() (waiting []*Call, ended []*Task) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.waiting, compareCalls)
	ended, s.ended = s.ended, nil
	slices.SortFunc(ended, func(a, b *Task) int { return cmp.Compare(a.id, b.id) })
	return slices.Clone(s.waiting), ended
}

func compareCalls(a, b *Call) int {
	return cmp.Or(cmp.Compare(a.Task.id, b.Task.id), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
}

// ReleaseCall lets a call go on. Calls of the same task that cannot be told from it go on
// with it: which of them came first is not in the test's hands.
func (s *Scheduler) ReleaseCall(c *Call) { s.releaseCalls(c, false) }

// ReleaseAndKill lets a call be done and kills its process before it learns of it.
func (s *Scheduler) ReleaseAndKill(c *Call) { s.releaseCalls(c, true) }

func (s *Scheduler) releaseCalls(c *Call, kill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Task.Process.dead = c.Task.Process.dead || kill
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Call) bool {
		if compareCalls(w, c) != 0 {
			return false
		}
		w.proceed <- true
		return true
	})
	s.rejectDeadCalls()
}

// KillProcess stops a process where it stands.
func (s *Scheduler) KillProcess(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dead = true
	s.rejectDeadCalls()
}

// rejectDeadCalls answers the parked calls of dead processes.
func (s *Scheduler) rejectDeadCalls() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Call) bool {
		if !w.Task.Process.dead {
			return false
		}
		w.proceed <- false
		return true
	})
}

// CountRunningTasks is how many tasks p has.
func (s *Scheduler) CountRunningTasks(p *Process) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for t := range s.running {
		if t.Process == p {
			n++
		}
	}
	return n
}
