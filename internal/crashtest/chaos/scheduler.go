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

// ErrStopped is the error of every call of a process that was stopped.
var ErrStopped = errors.New("the process has been stopped")

// Scheduler releases the calls of tasks one at a time. It works inside of a synctest bubble: a task
// may have its own goroutines; when all of them are parked at a call, or wait for one that is, the
// test chooses which call to release.
type Scheduler struct {
	mu      sync.Mutex
	serial  int
	waiting []*Call
	running map[*Task]bool
	ended   []*Task
}

// Process is a process that can be killed: after that, the calls of its tasks fail.
type Process struct {
	Name string
	dead bool // guarded by the scheduler's lock
}

// Task is one activity of a process, such as a reconciliation.
type Task struct {
	Process *Process
	Name    string
	// Err is the error with which the task ended.
	Err error
	// Listed contains the last list that the task read from its view, by kind; the objects are
	// shared.
	Listed map[string][]client.Object

	id        int
	scheduler *Scheduler
}

// Call is one call of a task.
type Call struct {
	Task       *Task
	Verb, Kind string
	Key        types.NamespacedName
	// Data is the content of a patch.
	Data []byte
	// Outcome is the result of the call; nil until it was released.
	Outcome error

	proceed chan bool // true: execute the call, false: the process is dead
}

// String returns the call and its outcome, in one line.
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

// TaskFromContext returns the task that ctx belongs to, or nil.
func TaskFromContext(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// WithoutTask returns ctx without its task. Calls with it are not parked: a test uses them to check
// what a task has done.
func WithoutTask(ctx context.Context) context.Context {
	return context.WithValue(ctx, taskKey{}, (*Task)(nil))
}

// recordListed records the objects that the task has listed.
func (t *Task) recordListed(kind string, objects []client.Object) {
	t.scheduler.mu.Lock()
	defer t.scheduler.mu.Unlock()
	t.Listed[kind] = objects
}

// StartTask starts a task of p. Call WaitForCalls to wait until it has parked or ended.
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

// waitForTurn parks a call until it is released. Calls outside of tasks are not parked.
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
		return ErrStopped // the call was executed, but the dead process does not see its result
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

// WaitForCalls waits until all tasks have parked or ended. It returns the parked calls, in an order
// that does not depend on how goroutines were scheduled, and the tasks that have ended since the
// last call.
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

// ReleaseCall releases a call. Identical calls of the same task are released together with it,
// because the test cannot control which of them came first.
func (s *Scheduler) ReleaseCall(c *Call) { s.releaseCalls(c, false) }

// ReleaseAndKill executes a call and kills its process before the process sees the result.
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

// KillProcess kills a process immediately.
func (s *Scheduler) KillProcess(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dead = true
	s.rejectDeadCalls()
}

// rejectDeadCalls rejects the parked calls of dead processes.
func (s *Scheduler) rejectDeadCalls() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Call) bool {
		if !w.Task.Process.dead {
			return false
		}
		w.proceed <- false
		return true
	})
}

// CountRunningTasks returns the number of running tasks of p.
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
