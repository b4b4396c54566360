// Package base contains what the commands of all nouns share: the connection to the hub, output
// formats, tables, progress, completion of names, and errors with their exit codes.
//
// Each noun has its commands in a package next to this one. Package cli builds the command tree
// from them. The packages of nouns share code only through this package.
package base
