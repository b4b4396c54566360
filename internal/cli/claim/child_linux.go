package claim

import (
	"syscall"
)

// withParent has the kernel send a child SIGTERM when this process is killed. That is when
// the thread that started the child ends: the caller keeps to its thread meanwhile.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
