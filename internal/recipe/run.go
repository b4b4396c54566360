package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// MaxState bounds the state folder, in bytes: on a hub it is stored in Secrets.
	MaxState = 1 << 20
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// outputGrace is how long the runner reads on after a program has ended: a process that it started
	// in the background may have inherited its output and may never end.
	outputGrace = 2 * time.Second
	// inputFile is the file with the Input, in the state folder.
	inputFile = "input.json"
)

// KubeconfigFile is the file in the state folder in which create leaves the cluster's kubeconfig.
const KubeconfigFile = "kubeconfig"

// Run is one run of one verb.
type Run struct {
	Recipe *Recipe
	Verb   Verb
	Input  Input
	// Dir is the state folder. Runs of one cluster share it; no two run at once.
	Dir string
	// Secrets is the folder with the credentials; empty if there are none.
	Secrets string
	// Log receives what the program prints to standard error, as it comes; nil discards it.
	Log io.Writer
	// StopGrace is the time between SIGTERM and SIGKILL; zero means 10 s.
	StopGrace time.Duration
}

// Result is how a run has ended.
type Result struct {
	Outcome Outcome
	// Answer is the program's standard output, at most MaxAnswer bytes.
	Answer []byte
	// Code is the exit code, or -1 if a signal ended the program.
	Code int
	// Problem says why a run failed, or why its exit code does not count; empty otherwise.
	Problem string
}

// Do runs the verb and waits for its end. An error means that it could not run at all. A program
// that exceeds its time limit, or whose ctx ends, gets SIGTERM, and SIGKILL after the grace period,
// with all processes of its process group.
func (r Run) Do(ctx context.Context) (Result, error) {
	if !r.Recipe.Has(r.Verb) {
		return Result{}, fmt.Errorf("recipe %s has no program %s", r.Recipe.Name, r.Verb)
	}
	if err := r.writeInput(); err != nil {
		return Result{}, fmt.Errorf("preparing %s of recipe %s: %w", r.Verb, r.Recipe.Name, err)
	}
	answer := &boundedBuffer{limit: MaxAnswer}
	cmd := r.command(answer)
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("starting %s of recipe %s: %w", r.Verb, r.Recipe.Name, err)
	}
	limit, cancel := context.WithTimeout(ctx, r.Recipe.Timeout(r.Verb))
	ended := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		r.killAfter(limit, cmd.Process.Pid, ended)
	}()
	err := cmd.Wait()
	exceeded := limit.Err()
	close(ended)
	<-killed
	cancel()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a process in the background kept the output open, and its parent has ended well
	}
	return r.judge(ctx, cmd.ProcessState, err, exceeded, answer)
}

// killAfter ends the process group when limit ends: SIGTERM first, and SIGKILL after the grace
// period, or as soon as the program itself has ended. It returns when ended is closed.
func (r Run) killAfter(limit context.Context, group int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-limit.Done():
	}
	killGroup(group, syscall.SIGTERM)
	grace := r.StopGrace
	if grace == 0 {
		grace = stopGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	killGroup(group, syscall.SIGKILL)
	<-ended
}

// killGroup signals a process group. Its leader may have ended, and all others with it.
func killGroup(group int, signal syscall.Signal) { _ = syscall.Kill(-group, signal) }

func (r Run) command(answer io.Writer) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.Recipe.Dir, string(r.Verb))) //nolint:noctx // killAfter ends the whole group
	cmd.Dir = r.Dir
	cmd.Env = r.environment()
	cmd.Stdout, cmd.Stderr = answer, r.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputGrace
	return cmd
}

// environment is that of this process, without what could make a tool write elsewhere. KUBECONFIG
// is the cluster's own file, into which most tools write what they create.
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

// EnvironmentName returns the name of the environment variable with a parameter.
func EnvironmentName(parameter string) string {
	return "RECIPE_" + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// writeInput writes the Input into the state folder.
func (r Run) writeInput() error {
	input := r.Input
	input.APIVersion, input.Verb = APIVersion, r.Verb
	raw, err := json.MarshalIndent(input, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Dir, inputFile), append(raw, '\n'), 0o600)
}

// judge says how the run has ended. A program that was killed, printed too much or left too much
// has failed, whatever its exit code.
func (r Run) judge(ctx context.Context, state *os.ProcessState, err, exceeded error, answer *boundedBuffer) (Result, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Result{}, fmt.Errorf("running %s of recipe %s: %w", r.Verb, r.Recipe.Name, err)
	}
	out := Result{Answer: answer.Bytes(), Code: state.ExitCode()}
	out.Outcome = outcomeOf(out.Code)
	size, err := folderSize(r.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("measuring what %s of recipe %s has left: %w", r.Verb, r.Recipe.Name, err)
	}
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("%s of recipe %s was ended: %w", r.Verb, r.Recipe.Name, ctx.Err())
	case exceeded != nil:
		out.Problem = fmt.Sprintf("%s did not end within %s: exit with %d to be called again, or set timeouts.%s in %s",
			r.Verb, r.Recipe.Timeout(r.Verb), exitGoing, r.Verb, FileName)
	case out.Code < 0:
		out.Problem = fmt.Sprintf("%s was ended by a signal (%s)", r.Verb, state)
	case answer.overflow:
		out.Problem = fmt.Sprintf("%s printed more than %d bytes: print messages to standard error", r.Verb, MaxAnswer)
	case size > MaxState:
		out.Problem = fmt.Sprintf("%s left %d bytes in its state folder: keep at most %d there, and large files elsewhere", r.Verb, size, MaxState)
	case out.Outcome == Failed:
		out.Problem = fmt.Sprintf("%s exited with code %d", r.Verb, out.Code)
	}
	if out.Problem != "" {
		out.Outcome = Failed
	}
	return out, nil
}

// folderSize returns the number of bytes of the files below dir.
func folderSize(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a process in the background removed it
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// boundedBuffer keeps the first limit bytes and discards the rest, so that a program that prints
// without end ends at its time limit, and not this process at its memory.
type boundedBuffer struct {
	limit    int
	mu       sync.Mutex
	buffer   bytes.Buffer
	overflow bool
}

// Write never fails: a program must not be ended by a full pipe.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.limit - b.buffer.Len()
	if len(p) > room {
		b.overflow = true
		b.buffer.Write(p[:room])
	} else {
		b.buffer.Write(p)
	}
	return len(p), nil
}

// Bytes returns what was kept.
func (b *boundedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buffer.Bytes())
}
