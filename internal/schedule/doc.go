// Package schedule decides when clusters are put to sleep and woken by the clock.
//
// A slot is a moment at which clusters are told to run or to hibernate. Parse makes
// a Timetable of cron expressions; Decide says which clusters are to be told now.
// Like every decider it is pure: time is a parameter, and what it needs to remember
// is in the values that it is given.
package schedule
