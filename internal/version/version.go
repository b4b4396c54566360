// Package version returns the version of hotspare.
package version

import "runtime/debug"

// version is set by the linker (see the Makefile).
var version string

// Get returns the version as in v0.1.0-3-gabcdef, or the version in the build information, or
// "dev".
func Get() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
