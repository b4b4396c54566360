//go:build !linux

package hostfacts

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
)

// addSystemFacts adds nothing but the reason: real pods need Linux, and other systems do not report
// the available memory to a program without cgo.
func (h host) addSystemFacts(_ context.Context, f *doctor.Facts) {
	f.Memory.Err = "this system does not report it"
}

func isolate(*syscall.SysProcAttr) {}

func createVeth() error { return nil }

func nameFileSystem(*unix.Statfs_t) string { return "" }
