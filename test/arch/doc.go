// Package arch holds the tests that keep the packages of this module apart. The
// rules, and why each exists, are in the test; docs/architecture.md draws them.
package arch
