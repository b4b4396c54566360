//go:build !linux

package claim

import "syscall"

// withParent does nothing: only Linux can signal a child when its parent is killed.
func withParent() *syscall.SysProcAttr { return nil }
