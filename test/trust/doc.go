// Package trust keeps docs/operate/trust.md correct: it lists the fields on which hotspare acts
// with more permissions than the users who may write them have.
package trust
