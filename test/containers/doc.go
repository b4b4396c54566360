// Package containers tests local clusters whose workers run containers, through the hotspare binary.
// The tests need root, and what packages.txt lists: see make test-containers.
package containers
