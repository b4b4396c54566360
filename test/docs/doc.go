// Package docs holds the tests of the documentation: its commands, links,
// manifests and fields are checked against what there is.
package docs
