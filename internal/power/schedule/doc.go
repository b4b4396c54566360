// Package schedule decides when clusters are hibernated and resumed on a schedule.
//
// A slot is a moment at which clusters are set to Running or Hibernating. Parse builds a
// Timetable from cron expressions; Decide returns the clusters to change now. It is pure: time is
// a parameter, and all state is in its arguments.
package schedule
