// Package trust keeps docs/operate/trust.md true: the list of the fields that hotspare acts
// on with more rights than those who may write them have.
package trust
