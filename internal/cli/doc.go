// Package cli is the command line of hotspare, from flags to exit codes.
//
// New makes the root command and Execute runs it. A command reads what it needs
// from the hub's API, works out with pure functions what to say, and prints
// that: results to standard output, progress and errors to standard error. It
// holds no state of its own; all of it is in the API.
//
// What fails before a command has begun (an unknown flag, a missing argument)
// is a usage error; see Execute for the exit codes.
package cli
