package recipe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

const (
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// outputGrace is how long the runner reads the output after a program has ended: a background
	// process may have inherited the output and may never end.
	outputGrace = 2 * time.Second
	// maxProcesses is the maximum number of processes of one run.
	maxProcesses = 4096
	// countInterval is the time between two counts of the processes of a run.
	countInterval = time.Second
)

// Run is one run of one verb.
type Run struct {
	Recipe *Recipe
	Verb   Verb
	Input  Input
	// Dir is the state folder, which all runs of a cluster share. It is locked during a run.
	Dir string
	// Secrets is the folder with the credentials; empty if there are none. The values of its files are
	// removed from Log, and from all errors.
	Secrets string
	// Log receives the program's standard error, and the standard output of the program logs: a line
	// such as "== 2026-03-01T12:00:00Z create mine-x7k2p" before the first line, the first 512 KiB
	// immediately, and the last 512 KiB when the program has ended. Nil discards it.
	Log io.Writer
	// StopGrace is the time between SIGTERM and SIGKILL; zero means 10 s.
	StopGrace time.Duration
	// LockTimeout is how long to wait while another run locks the state folder; zero means 2 s.
	LockTimeout time.Duration
	// MaxProcesses is the maximum number of processes of the run; zero means 4096. Only Linux enforces
	// it.
	MaxProcesses int
}

// Result is the result of a run.
type Result struct {
	Outcome Outcome
	// Answer is the program's standard output, at most MaxAnswer bytes. The output of the program logs
	// is in Log instead.
	Answer []byte
	// Code is the exit code, or -1 if a signal ended the program.
	Code int
	// Problem is the reason for the outcomes Invalid, NoRoom and Failed, with the last line of the
	// program's standard error; otherwise empty. It contains no secrets.
	Problem string
}

// Do runs the verb and waits until it has ended. It returns an error if the verb could not run, or if
// ctx has ended. The error is a fault.Conflict if another run locks the state folder, and a fault.Wait
// while another program writes the program.
//
// A program that exceeds its time limit, or whose ctx ends, receives SIGTERM and, after the grace
// period, SIGKILL, as do all processes of its process group. On Linux, processes that have left the
// process group are killed too. Processes that a program leaves in the background when it exits on
// its own keep running: they may be the cluster.
func (r Run) Do(ctx context.Context) (_ Result, err error) {
	if !r.Recipe.Has(r.Verb) {
		return Result{}, fmt.Errorf("recipe %s has no program %s", r.Recipe.Name, r.Verb)
	}
	secrets, err := readSecrets(r.Secrets)
	if err != nil {
		return Result{}, r.wrapError("preparing", err)
	}
	lock, err := lockState(ctx, r.Dir, r.LockTimeout)
	if err != nil {
		return Result{}, r.wrapError("preparing", err)
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if err := writeInput(r.Dir, r.Verb, r.Input); err != nil {
		return Result{}, r.wrapError("preparing", err)
	}
	limit, cancel := context.WithTimeout(ctx, r.Recipe.Timeout(r.Verb))
	defer cancel()
	answer, log := &boundedBuffer{limit: MaxAnswer}, newLogWriter(r.Log, r.describeStart(), secrets)
	defer log.flush()
	p, err := r.start(lock, answer, log)
	if err != nil {
		return Result{}, r.wrapError("starting", explainStartError(err))
	}
	killed, err := r.wait(limit, p)
	if ctx.Err() != nil && killed != nil {
		return Result{}, fmt.Errorf("%s of recipe %s was stopped: %w", r.Verb, r.Recipe.Name, ctx.Err())
	}
	log.flush()
	return r.evaluate(p.cmd.ProcessState, err, killed, answer, log.lastLine())
}

// describeStart returns the heading of the run in the log.
func (r Run) describeStart() string {
	return fmt.Sprintf("== %s %s %s", time.Now().UTC().Format(time.RFC3339), r.Verb, cmp.Or(r.Input.InfraID, r.Input.Name))
}

func (r Run) wrapError(doing string, err error) error {
	return fmt.Errorf("%s %s of recipe %s: %w", doing, r.Verb, r.Recipe.Name, err)
}

// start starts the program. It first records the marker of its processes, so that the next run kills
// them if this process is killed.
func (r Run) start(lock *stateLock, answer, log io.Writer) (*process, error) {
	marker := rand.Text()
	if err := lock.recordMarker(marker); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(r.Recipe.Dir, string(r.Verb))) //nolint:noctx // wait kills all of its processes
	cmd.Dir = r.Dir
	cmd.Env = append(r.environment(), markerVariable+"="+marker)
	cmd.Stdout, cmd.Stderr = answer, log
	if r.Verb == Logs {
		cmd.Stdout = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputGrace
	return startProcess(cmd, marker)
}

// wait waits until the program has ended, and kills it when limit ends or when it has too many
// processes. It returns the reason why it killed the program, or nil, and the error of the program.
func (r Run) wait(limit context.Context, p *process) (killed, err error) {
	count := time.NewTicker(countInterval)
	defer count.Stop()
	for killed == nil {
		select {
		case <-p.ended:
			return nil, p.err
		case <-limit.Done():
			killed = fmt.Errorf("%s did not end within %s: %s", r.Verb, r.Recipe.Timeout(r.Verb), timeoutRemedy(r.Verb))
		case <-count.C:
			if most := valueOr(r.MaxProcesses, maxProcesses); p.countProcesses() > most {
				killed = fmt.Errorf("%s started more than %d processes", r.Verb, most)
			}
		}
	}
	select {
	case <-p.ended: // at the same time
		return nil, p.err
	default:
	}
	p.terminate(valueOr(r.StopGrace, stopGrace))
	return killed, p.err
}

// timeoutRemedy returns what to do about a program that exceeds its time limit.
func timeoutRemedy(v Verb) string {
	increase := fmt.Sprintf("increase timeouts.%s in %s", v, FileName)
	if slices.Contains(repeatableVerbs, v) {
		return fmt.Sprintf("exit with code %d to be called again, or %s", exitInProgress, increase)
	}
	return increase
}

// valueOr returns value, or fallback if value is zero.
func valueOr[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// explainStartError adds the usual cause to an error of the kernel.
func explainStartError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: check that the interpreter in its first line exists, and that the line does not end with a carriage return", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: add an interpreter as its first line, such as #!/bin/sh", err)
	case errors.Is(err, syscall.ETXTBSY):
		return fault.New(fault.Wait, fmt.Errorf("%w: another program is writing it: call it again afterward", err))
	}
	return err
}

// environment returns the environment of this process without variables that would make a tool write
// elsewhere. KUBECONFIG is the cluster's own file: most tools write the kubeconfig of a new cluster to
// it.
func (r Run) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "HOTSPARE_") || strings.HasPrefix(name, "RECIPE_")
	})
	env = append(
		env,
		"HOTSPARE_DIR="+r.Dir, "HOTSPARE_RECIPE_DIR="+r.Recipe.Dir, "HOTSPARE_SECRETS="+r.Secrets,
		"HOTSPARE_NAME="+r.Input.Name, "HOTSPARE_INFRA_ID="+r.Input.InfraID,
		"KUBECONFIG="+filepath.Join(r.Dir, KubeconfigFile),
	)
	for name, value := range r.Input.With {
		env = append(env, EnvironmentName(name)+"="+value)
	}
	return env
}

// EnvironmentName returns the name of the environment variable of a parameter.
func EnvironmentName(parameter string) string {
	return "RECIPE_" + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// evaluate returns the result of a run. A program that was killed, printed too much or left too much
// has failed, whatever its exit code.
func (r Run) evaluate(state *os.ProcessState, err, killed error, answer *boundedBuffer, lastLine string) (Result, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return Result{}, r.wrapError("running", err)
	}
	out := Result{Answer: answer.copyBytes(), Code: state.ExitCode()}
	out.Outcome = outcomeOfExitCode(out.Code)
	var tooLarge error
	if r.Verb != Destroy { // the state is deleted next, and an error would keep the cluster
		tooLarge = checkStateSize(r.Dir, r.Verb)
	}
	switch {
	case killed != nil:
		out.Problem = withLastLine(killed.Error(), lastLine)
	case out.Code < 0:
		out.Problem = fmt.Sprintf("%s was ended by a signal (%s)", r.Verb, state)
	case answer.overflow:
		out.Problem = fmt.Sprintf("%s printed more than %d bytes to standard output: print messages to standard error", r.Verb, MaxAnswer)
	case tooLarge != nil:
		out.Problem = tooLarge.Error()
	default:
		out.Problem = describeExit(r.Verb, out.Outcome, out.Code, lastLine)
		return out, nil
	}
	out.Outcome = Failed
	return out, nil
}

// withLastLine adds the last line of a program's standard error, if there is one.
func withLastLine(problem, lastLine string) string {
	if lastLine == "" {
		return problem
	}
	return problem + "; its last line: " + lastLine
}

// describeExit explains the outcome of a program that has exited, with the last line of its standard
// error; "" if it has succeeded or must be called again. A negative code is unknown.
func describeExit(v Verb, outcome Outcome, code int, lastLine string) string {
	var what, fallback string
	switch outcome {
	case Invalid:
		what, fallback = fmt.Sprintf("%s rejected the request (exit code %d)", v, exitInvalid), ": see the log of the cluster for what to change"
	case NoRoom:
		what = fmt.Sprintf("%s reported that the platform has no capacity for the cluster (exit code %d)", v, exitNoRoom)
	case Failed:
		what, fallback = fmt.Sprintf("%s exited with code %d", v, code), ", and printed no reason to standard error"
		if code < 0 {
			what, fallback = string(v)+" failed", ""
		}
	default:
		return ""
	}
	if lastLine == "" {
		return what + fallback
	}
	return what + ": " + lastLine
}
