//go:build !linux

package renderprocess

// limitResources limits nothing: only Linux is a platform of hubs.
func limitResources(uint64, uint64) error { return nil }
