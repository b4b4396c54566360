package local

import "syscall"

// isolateProcess gives a process namespaces of its own, for a machine that runs containers. What it
// creates in them ends with it.
func isolateProcess(a *syscall.SysProcAttr) {
	a.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
}
