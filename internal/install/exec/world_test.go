package exec_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	cloudexec "hotspare.io/hotspare/internal/cloud/exec"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/exec"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// process is what one process of hotspare has in memory. After crash, nothing of it affects anything:
// its calls end, and only the program that it has started runs on.
type process struct {
	executor *exec.Executor
	actuator *cloudexec.Actuator
	runner   *runner.Processes
	clock    *recipetest.Clock
	dead     chan struct{}
	stop     context.CancelFunc
	once     sync.Once

	// mu protects left, the number of steps until the process is killed; 0 means never. The process is
	// killed before or after that step.
	mu    sync.Mutex
	left  int
	after bool
}

// step runs one step of the process, unless it is killed before.
func step[T any](p *process, do func() (T, error)) (T, error) {
	p.mu.Lock()
	last := p.left == 1
	if p.left > 0 {
		p.left--
	}
	p.mu.Unlock()
	if last && !p.after {
		p.crash()
	}
	if p.isDead() {
		return *new(T), errDead
	}
	v, err := do()
	if last && p.after {
		p.crash()
	}
	if p.isDead() {
		return *new(T), errDead
	}
	return v, err
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

var errDead = errors.New("this process of hotspare was killed")

// start starts a process of hotspare with the data folder dir.
func start(t testing.TB, w recipetest.World, dir string, secrets cloud.Secrets) *process {
	t.Helper()
	folder := runner.Folder(filepath.Join(dir, "clusters"))
	run, err := runner.NewProcesses(folder, runner.Options{StopGrace: 50 * time.Millisecond, SecretDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if secrets == nil {
		secrets = func(context.Context, types.NamespacedName) (map[string][]byte, error) {
			return nil, fault.NewDenied("there are no Secrets")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{runner: run, clock: &recipetest.Clock{}, dead: make(chan struct{}), stop: cancel}
	mortal := mortal{Runner: run, Store: folder, process: p}
	catalog := runner.Catalog{Dir: w.Catalog}
	p.executor = exec.New(ctx, exec.Options{
		Runner: mortal, Store: mortal, Catalog: catalog, Secrets: secrets, Clock: p.clock,
		Pause: 10 * time.Millisecond, RetryNoRoom: 10 * time.Millisecond, RetryPrepare: 10 * time.Millisecond,
	})
	p.actuator = cloudexec.New(ctx, cloudexec.Options{Runner: mortal, Catalog: catalog, Secrets: secrets, Clock: p.clock, Pause: 10 * time.Millisecond, FirstRetry: time.Millisecond, ObserveWait: time.Second})
	return p
}

// end stops the process as Ctrl-C does.
func (p *process) end() {
	p.stop()
	p.executor.Wait()
	p.actuator.Wait()
}

// crash stops the process as kill -9 does.
func (p *process) crash() { p.once.Do(func() { close(p.dead) }) }

// mortal is the Runner and the Store of a process that may be killed.
type mortal struct {
	runner.Runner
	runner.Store
	*process
}

// call runs a program in the background, and returns when it has ended or the process was killed.
func call[T any](p *process, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	return step(p, func() (T, error) {
		answers := make(chan answer, 1)
		go func() {
			v, err := do()
			answers <- answer{v, err}
		}()
		select {
		case a := <-answers:
			return a.value, a.err
		case <-p.dead:
			return *new(T), errDead
		}
	})
}

func (m mortal) Call(ctx context.Context, t runner.Task, v recipe.Verb) (bool, error) {
	return call(m.process, func() (bool, error) { return m.Runner.Call(ctx, t, v) })
}

func (m mortal) Observe(ctx context.Context, t runner.Task) (cloud.Machines, error) {
	return call(m.process, func() (cloud.Machines, error) { return m.Runner.Observe(ctx, t) })
}

func (m mortal) ReadKubeconfig(ctx context.Context, t runner.Task) ([]byte, error) {
	return call(m.process, func() ([]byte, error) { return m.Runner.ReadKubeconfig(ctx, t) })
}

func (m mortal) WriteRecord(ctx context.Context, key runner.Key, r runner.Record) error {
	_, err := step(m.process, func() (bool, error) { return true, m.Store.WriteRecord(ctx, key, r) })
	return err
}

func (m mortal) Delete(ctx context.Context, key runner.Key) error {
	_, err := step(m.process, func() (bool, error) { return true, m.Store.Delete(ctx, key) })
	return err
}

// newRequest returns the request for the first attempt of a cluster.
func newRequest(name string) install.Request {
	return install.Request{ClusterTarget: install.ClusterTarget{
		Cluster: types.NamespacedName{Namespace: "ns-" + name, Name: name}, UID: types.UID("uid-" + name),
		Platform: hivev1.Platform{Exec: &hivev1.ExecPlatform{Recipe: recipetest.Name}},
	}}
}

// wait calls poll until it returns a phase other than Running; errors that ask to wait count as
// Running.
func wait(t testing.TB, poll func() (install.Result, error)) (install.Result, error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // programs run
		r, err := poll()
		switch kind := fault.KindOf(err); {
		case kind == fault.Wait, kind == fault.Capacity:
		case err != nil, r.Phase != install.Running:
			return r, err
		}
	}
	t.Fatal("it did not end within a minute")
	return install.Result{}, nil
}
