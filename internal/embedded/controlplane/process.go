package controlplane

import (
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

const (
	// gcPercent trades memory for processor time during a start: with 50, a control plane needs a tenth of a second
	// more, and its memory grows to 290 MB, not to 310. The caller sets another value when it is ready.
	gcPercent = 150
	// walSegment is the number of bytes that etcd allocates at once for its log. The default of 64
	// MB is for clusters a thousand times larger.
	walSegment = 4 << 20
)

// errComponentFatal reports that a component called klog.Fatal, as the API server does when a step
// of its start fails.
var errComponentFatal = errors.New("a component failed; its last messages are in the log")

var processUsed atomic.Bool

// prepareProcess sets the state that is global to the process. It fails on the second call. A fatal
// error that would end the process calls giveUp instead and ends only the goroutine, so that the
// data can be closed and the user gets an error.
func prepareProcess(log io.Writer, giveUp func(error)) error {
	if processUsed.Swap(true) {
		return errors.New("this process has already started a control plane")
	}
	debug.SetGCPercent(gcPercent)
	wal.SegmentSizeBytes = walSegment
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	klog.OsExit = func(int) {
		giveUp(errComponentFatal)
		runtime.Goexit()
	}
	return nil
}
