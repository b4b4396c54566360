// Package e2e tests hotspare as its users meet it: the built binary, its API and
// its files. It knows nothing of the insides.
//
// The binary is $HOTSPARE_BINARY, else bin/hotspare, which "make build" makes.
// Tests that can share a hub run in parallel on one that the first of them
// starts; those that kill or restart theirs have one each, and run before, one at
// a time. Processes are found in /proc: the tests need Linux.
package e2e
