// Package programpages gives back memory that a process does not need any more, after its start.
//
// The pages of a program, its code and constants, are in memory once they were used, and count as memory of the process from
// then on. A control plane uses most of them only while it starts.
package programpages

import "k8s.io/klog/v2"

// ReleaseAndLog is Release, and logs its error: the process works as well with these pages.
func ReleaseAndLog() {
	if _, err := Release(); err != nil {
		klog.ErrorS(err, "the pages of the program that the start used stay in memory")
	}
}
