// Package demand records how many claims arrived, in a record that is small enough for an object of
// the API. It is pure.
//
// The record has one bin for each quarter of an hour with claims; older bins become hours, and the
// oldest are dropped. It takes claims in any order and more than once, and it knows at which times
// nobody looked, so that these do not count as times without demand.
package demand
