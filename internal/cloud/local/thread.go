package local

import (
	"os/exec"
	"runtime"
	"sync"
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

// startFromLastingThread starts a command from a thread that ends with this process. A machine asks the kernel to
// continue it when its parent dies (processtree.ContinueWhenParentDies), and the kernel takes the thread that has
// started it for its parent.
func startFromLastingThread(cmd *exec.Cmd) error {
	runLastingThread()
	started := make(chan error, 1)
	starts <- func() { started <- cmd.Start() }
	return <-started
}
