package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// stopLimit is how long a stop may take before the process is killed. Clusters stop in parallel, in
// about two seconds.
const stopLimit = time.Minute

// Down stops the hotspare that runs on dir and returns when it has ended, together with everything
// that it started. It reports whether one was running.
func Down(ctx context.Context, dir string) (bool, error) {
	pid, err := findRunningPID(dir)
	if err != nil || pid == 0 {
		return false, err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return true, fmt.Errorf("stopping hotspare (pid %d): %w", pid, err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, stopLimit, true, func(context.Context) (bool, error) {
		now, err := findRunningPID(dir)
		return now != pid, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		// The machines detect that their parent has ended, and end too.
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return true, fmt.Errorf("killing hotspare (pid %d), which did not stop in %s: %w", pid, stopLimit, err)
		}
		return true, nil
	}
	return true, err
}

// IsReady reports whether the running process pid runs hotspare on dir and its hub is ready. It
// does not try to acquire the lock, because that could prevent the process from acquiring it.
func IsReady(dir string, pid int) bool {
	ready, err := os.Stat(readyPath(dir))
	if err != nil {
		return false
	}
	lock, err := os.Stat(LockPath(dir))
	// A ready file that is older than the lock was written by the previous hotspare.
	return err == nil && flock.ReadHolder(LockPath(dir)) == pid && !ready.ModTime().Before(lock.ModTime())
}

// findRunningPID returns the pid of the hotspare that runs on dir; 0 if there is none.
func findRunningPID(dir string) (int, error) {
	if _, err := os.Stat(LockPath(dir)); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	lock, err := flock.Acquire(LockPath(dir))
	var held *flock.LockedError
	if errors.As(err, &held) {
		return held.PID, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, lock.Release()
}
