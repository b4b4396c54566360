//go:build !linux

package usernamespace

import (
	"context"
	"errors"
	"os/exec"
)

var errNotLinux = errors.New("user namespaces need Linux")

// IsNeeded returns false: containers run on Linux only.
func IsNeeded() bool { return false }

// Configure does nothing.
func Configure(*exec.Cmd) {}

// Map returns an error.
func Map(context.Context, int) error { return errNotLinux }

// Enter does nothing.
func Enter() error { return nil }
