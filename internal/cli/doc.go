// Package cli is the command line of hotspare, from flags to exit codes.
//
// New returns the root command and Execute runs it. A command reads objects from the hub's API,
// computes its output with pure functions, and prints results to standard output and progress and
// errors to standard error. It keeps no state: all state is in the API.
//
// An error before a command starts (an unknown flag, a missing argument) is a usage error; see
// Execute for the exit codes.
package cli
