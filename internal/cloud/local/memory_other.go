//go:build !linux

package local

// availableMemory returns Unlimited: systems other than Linux do not report the available memory to
// a program without cgo.
func availableMemory() (int64, error) { return Unlimited, nil }
