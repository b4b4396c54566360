//go:build !linux

package claim

import "syscall"

// withParent does nothing: only Linux tells a child that its parent was killed.
func withParent() *syscall.SysProcAttr { return nil }
