// Package programpages returns memory that a process does not need any more, after its start or a burst.
//
// The pages of a program, its code and constants, are in memory once they were used, and count as memory of the process from
// then on. A control plane uses half of them only while it starts.
package programpages

import (
	"sync"

	"k8s.io/klog/v2"
)

var logged sync.Once

// ReleaseAndLog is Release, and logs its first error: the process works as well with these pages.
func ReleaseAndLog() {
	if _, err := Release(); err != nil {
		logged.Do(func() { klog.ErrorS(err, "pages of the program that nothing uses stay in memory") })
	}
}
