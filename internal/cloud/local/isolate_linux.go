package local

import "syscall"

// isolateProcess gives a process namespaces of its own, for a machine that runs containers. The
// process's interfaces, mounts and children end with it.
func isolateProcess(a *syscall.SysProcAttr) {
	a.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
}
