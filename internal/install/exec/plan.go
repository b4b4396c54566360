package exec

import (
	"errors"
	"time"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// Action is what Install does next for an attempt.
type Action string

const (
	// Start: start the work that creates the cluster, or continue it after a restart.
	Start Action = "start"
	// Report: the record is final, or waits for a change: report it.
	Report Action = "report"
	// Wait: the work runs.
	Wait Action = "wait"
)

// Seen is what Install has observed about an attempt.
type Seen struct {
	// Working is true while the work of the attempt runs in this process.
	Working bool
	// Record is the record of the attempt; its zero value if there is none.
	Record runner.Record
	// Request is the hash of the current request.
	Request string
	Now     time.Time
}

// Decide decides what Install does. It is pure.
func Decide(s Seen) Action {
	switch {
	case s.Working:
		return Wait
	case s.Record.Phase == runner.Created, s.Record.Phase == runner.Failed:
		return Report
	case s.Record.Phase == runner.Rejected && s.Record.Request == s.Request:
		return Report
	case s.Record.Phase == runner.NoRoom && s.Record.Request == s.Request && s.Now.Before(s.Record.RetryAt):
		return Report
	}
	return Start
}

// NeedsRequest reports whether Decide depends on the current request: it must then be computed, which
// fails if the recipe or a Secret is missing.
func (s Seen) NeedsRequest() bool {
	return !s.Working && s.Record.Phase != runner.Created && s.Record.Phase != runner.Failed
}

const (
	// retryAfterNoRoom is the time after which create is called again when the platform has no
	// capacity.
	retryAfterNoRoom = 2 * time.Minute
	// maxRuns is how many time limits of create or destroy its work may take in total, when the program
	// exits with code 10 again and again.
	maxRuns = 12
)

// Next is what follows a run of create.
type Next struct {
	// Again is true if create must be called again.
	Again bool
	// Phase is the phase of the attempt; Creating if nothing has changed.
	Phase   runner.Phase
	Problem string
	RetryAt time.Time
}

// Limits are durations that DecideAfterCreate depends on: the time limit of one run of create, and the
// time after which it is called again when the platform has no capacity.
type Limits struct{ Run, NoRoomRetry time.Duration }

// DecideAfterCreate decides what follows a run of create: again and err are its result. It is pure.
func DecideAfterCreate(again bool, err error, started, now time.Time, limits Limits) Next {
	var failed *recipe.VerbError
	limit := limits.Run
	switch {
	case err == nil && !again:
		return Next{Phase: runner.Created}
	case err == nil && now.Sub(started) > maxRuns*limit:
		return Next{Phase: runner.Failed, Problem: "create has exited with code 10 for more than " + (maxRuns * limit).String() +
			": correct the recipe, or increase spec.platform.exec.timeouts.create"}
	case err == nil, fault.KindOf(err) == fault.Conflict, fault.KindOf(err) == fault.Wait:
		return Next{Again: true, Phase: runner.Creating}
	case !errors.As(err, &failed):
		return Next{Phase: runner.Failed, Problem: err.Error()}
	case failed.Outcome == recipe.Invalid:
		return Next{Phase: runner.Rejected, Problem: err.Error()}
	case failed.Outcome == recipe.NoRoom:
		return Next{Phase: runner.NoRoom, Problem: err.Error(), RetryAt: now.Add(limits.NoRoomRetry)}
	}
	return Next{Phase: runner.Failed, Problem: err.Error()}
}

// DecideAfterDestroy decides what follows a run of destroy: runAgain and err are its result. It returns
// true if destroy must be called again, and an error if the destruction has failed: the controller reports
// it, backs off, and starts another one. It is pure.
func DecideAfterDestroy(runAgain bool, err error, started, now time.Time, limit time.Duration) (again bool, _ error) {
	var failed *recipe.VerbError
	kind := fault.KindOf(err)
	switch {
	case err == nil && !runAgain:
		return false, nil
	case errors.As(err, &failed), err != nil && kind != fault.Conflict && kind != fault.Wait:
		return false, err
	case now.Sub(started) <= maxRuns*limit:
		return true, nil
	case err != nil:
		return false, err
	}
	return false, errors.New("destroy has exited with code 10 for more than " + (maxRuns * limit).String() +
		": correct the recipe, or increase spec.platform.exec.timeouts.destroy")
}
