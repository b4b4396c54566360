package local

import (
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// starts receives the functions that the lasting thread calls.
var starts = make(chan func())

// runLastingThread starts the thread, once.
var runLastingThread = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
})

// idleTimerSlack is how late the kernel may fire the timers of a machine's process. A control plane has hundreds of
// timers a second, most of them for metrics and caches. With the slack, an idle process wakes at most fifty times a second.
const idleTimerSlack = 20 * time.Millisecond

// startFromLastingThread starts a command from a thread that ends with this process. A machine asks the kernel to
// continue it when its parent dies (processtree.ContinueWhenParentDies), and the kernel takes the thread that has
// started it for its parent. The kernel may fire the timers of the process, and of those that it starts, late by slack; 0
// is the default of the kernel. Only Linux has a slack.
func startFromLastingThread(cmd *exec.Cmd, slack time.Duration) error {
	runLastingThread()
	started := make(chan error, 1)
	starts <- func() {
		setTimerSlack(slack)
		started <- cmd.Start()
	}
	return <-started
}
