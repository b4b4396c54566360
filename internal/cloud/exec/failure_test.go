package exec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud/exec"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// countingProgram is a program that counts its runs, and then does what it is told.
func countingProgram(then string) string {
	return "#!/bin/sh\necho run >>\"$STANDIN_HOME/runs-${0##*/}\"\n" + then + "\n"
}

// countRuns returns how often a countingProgram has run.
func countRuns(t *testing.T, w recipetest.World, verb recipe.Verb) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.Home, "runs-"+string(verb)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// awaitChange waits until the actuator reports the end of a program.
func awaitChange(t *testing.T, a *exec.Actuator) {
	t.Helper()
	select {
	case <-a.Changes():
	case <-time.After(patience):
		t.Fatal("the end of the program was not reported")
	}
}

func TestAFailingObserveRunsAgainAfterDelaysThatGrow(t *testing.T) {
	w, now := recipetest.New(t), &recipetest.Clock{}
	w.WriteProgram(t, "observe", countingProgram("echo the cloud is down >&2; exit 1"))
	a := newActuator(t, w, exec.Options{Clock: now, FirstRetry: time.Hour})
	for run, delay := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		for range 3 { // of which only the first runs the program
			if _, err := a.Observe(t.Context(), refOf("c-12345")); err == nil || !strings.Contains(err.Error(), "the cloud is down") {
				t.Fatalf("run %d: got %v, want the program's reason", run+1, err)
			}
		}
		if n := countRuns(t, w, recipe.Observe); n != run+1 {
			t.Fatalf("observe has run %d times, want %d", n, run+1)
		}
		now.Step(delay*time.Hour - time.Minute) // the test takes less than a minute
		if _, err := a.Observe(t.Context(), refOf("c-12345")); err == nil || countRuns(t, w, recipe.Observe) != run+1 {
			t.Fatalf("observe runs before %d hours have passed: %v", delay, err)
		}
		now.Step(time.Minute)
	}
}

func TestTheLogOfTheClusterSaysWhenAFailingProgramRunsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		verb recipe.Verb
		then string
		want string // in the line of the log
		in   time.Duration
	}{
		"observe fails without a word": {recipe.Observe, "exit 3", "observe exited with code 3, and printed no reason to standard error", 5 * time.Second},
		"observe prints no list":       {recipe.Observe, "echo nonsense", "observe", 5 * time.Second},
		"stop fails with a reason":     {recipe.Stop, "echo no such machine >&2; exit 1", "stop exited with code 1: no such machine", 5 * time.Second},
		"start is an invalid request":  {recipe.Start, "exit 20", "start rejected the request", 5 * time.Minute},
		"start finds no capacity":      {recipe.Start, "exit 30", "start reported that the platform has no capacity", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w, folder := recipetest.New(t), runner.Folder(t.TempDir())
			a, ref := newActuatorIn(t, w, folder, exec.Options{}), refOf("c-12345")
			createMachines(t, w, ref.InfraID, "Running", "master-0")
			w.WriteProgram(t, string(c.verb), countingProgram(c.then))
			switch c.verb {
			case recipe.Observe:
				_, _ = a.Observe(t.Context(), ref) // the log has its error
			case recipe.Start:
				_ = a.Start(t.Context(), ref) // as above
				awaitChange(t, a)
			default:
				_ = a.Stop(t.Context(), ref) // as above
				awaitChange(t, a)
			}
			log := awaitFailureLine(t, folder, ref.InfraID)
			fields := strings.Fields(log) // == TIME VERB INFRA-ID failed, and runs again at TIME, ...
			failed, err1 := time.Parse(time.RFC3339, fields[1])
			again, err2 := time.Parse(time.RFC3339, strings.TrimSuffix(fields[9], ","))
			if err1 != nil || err2 != nil || again.Sub(failed) != c.in || fields[2] != string(c.verb) || !strings.Contains(log, c.want) {
				t.Errorf("want %q, again after %s; the log has:\n%s", c.want, c.in, log)
			}
		})
	}
}

// awaitFailureLine waits until the log of a cluster says when a program runs again, and returns that line.
func awaitFailureLine(t *testing.T, folder runner.Folder, infraID string) string {
	t.Helper()
	limit := time.After(patience)
	for {
		raw, _ := folder.ReadCompleteLog(infraID) // it may not exist yet
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, " failed, and runs again at ") {
				return line
			}
		}
		select {
		case <-limit:
			t.Fatalf("no line says when the program runs again:\n%s", raw)
		case <-time.After(10 * time.Millisecond): // nothing reports a line of a log
		}
	}
}

func TestAFailingStopRunsAgainAfterItsDelay(t *testing.T) {
	for name, c := range map[string]struct {
		code, kind string
		delay      time.Duration
	}{
		"a failure":                {"1", "unknown", 5 * time.Second},
		"an invalid request":       {"20", "denied", 5 * time.Minute},
		"a platform without space": {"30", "capacity", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := recipetest.New(t), &recipetest.Clock{}
			w.WriteProgram(t, "stop", countingProgram("exit "+c.code))
			a, ref := newActuator(t, w, exec.Options{Clock: now}), refOf("c-12345")
			createMachines(t, w, ref.InfraID, "Running", "master-0")
			stop := func() error {
				err := a.Stop(t.Context(), ref)
				if err == nil {
					awaitChange(t, a)
				}
				return err
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				err := stop()
				if err == nil || fault.KindOf(err).String() != c.kind || fault.RetryAfter(err) > c.delay || fault.RetryAfter(err) < c.delay/2 {
					t.Fatalf("stop returns %v (%s), to be repeated after %s", err, fault.KindOf(err), fault.RetryAfter(err))
				}
			}
			if n := countRuns(t, w, recipe.Stop); n != 1 {
				t.Fatalf("stop has run %d times before its delay has passed, want once", n)
			}
			now.Step(c.delay)
			if err := stop(); err != nil || countRuns(t, w, recipe.Stop) != 2 {
				t.Errorf("after %s: %v, and stop has run %d times, want twice", c.delay, err, countRuns(t, w, recipe.Stop))
			}
		})
	}
}

func TestACorrectedRecipeRunsAtOnce(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "stop", countingProgram("exit 20"))
	a, ref := newActuator(t, w, exec.Options{}), refOf("c-12345")
	createMachines(t, w, ref.InfraID, "Running", "master-0")
	if err := a.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, a)
	if err := a.Stop(t.Context(), ref); fault.KindOf(err) != fault.Denied {
		t.Fatalf("got %v, want fault.Denied", err)
	}
	w.WriteProgram(t, "stop", countingProgram("exit 0"))
	if err := a.Stop(t.Context(), ref); err != nil {
		t.Fatalf("after the correction: %v", err)
	}
	awaitChange(t, a)
	if n := countRuns(t, w, recipe.Stop); n != 2 {
		t.Errorf("stop has run %d times, want twice", n)
	}
}

func TestARecipeThatIsCorrectedWhileItRunsIsTriedAtOnce(t *testing.T) {
	w := recipetest.New(t)
	correct := countingProgram("exit 0")
	w.WriteProgram(t, "stop", countingProgram("mv \"$STANDIN_HOME/correct\" \"$HOTSPARE_RECIPE_DIR/stop\"; exit 20"))
	if err := os.WriteFile(filepath.Join(w.Home, "correct"), []byte(correct), 0o755); err != nil {
		t.Fatal(err)
	}
	a, ref := newActuator(t, w, exec.Options{}), refOf("c-12345")
	createMachines(t, w, ref.InfraID, "Running", "master-0")
	for range 2 {
		if err := a.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		awaitChange(t, a)
	}
	if n := countRuns(t, w, recipe.Stop); n != 2 {
		t.Errorf("stop has run %d times, want twice", n)
	}
}

func TestARequestToStartForgetsThatStopHasFailed(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "stop", countingProgram("exit 20"))
	a, ref := newActuator(t, w, exec.Options{}), refOf("c-12345")
	createMachines(t, w, ref.InfraID, "Running", "master-0")
	for _, request := range []recipe.Verb{recipe.Stop, recipe.Start, recipe.Stop} {
		call := a.Stop
		if request == recipe.Start {
			call = a.Start
		}
		if err := call(t.Context(), ref); err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		awaitChange(t, a)
	}
	if n := countRuns(t, w, recipe.Stop); n != 2 {
		t.Errorf("stop has run %d times, want twice: each request of a user is tried", n)
	}
}

func TestOnlyTheEndOfAnObserveThatNobodyAwaitsIsAChange(t *testing.T) {
	w := recipetest.New(t)
	a := newActuator(t, w, exec.Options{})
	if _, err := a.Observe(t.Context(), refOf("c-12345")); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-a.Changes():
		t.Errorf("%s is reported although the caller has the answer", id)
	default:
	}
	hasty := newActuator(t, w, exec.Options{ObserveWait: time.Nanosecond})
	if _, err := hasty.Observe(t.Context(), refOf("c-12345")); fault.KindOf(err) != fault.Wait {
		t.Fatalf("got %v, want fault.Wait: no program ends within a nanosecond", err)
	}
	awaitChange(t, hasty)
}
