package claim

import (
	"syscall"
)

// withParent makes the kernel send SIGTERM to the child when the thread that started it ends, and
// so when this process is killed. The caller must stay locked to its thread.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
