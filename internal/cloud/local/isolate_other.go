//go:build !linux

package local

import "syscall"

// isolateProcess does nothing: without Linux, the machine reports that it cannot run containers.
func isolateProcess(*syscall.SysProcAttr) {}
