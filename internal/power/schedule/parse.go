package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no time zone database, as in an image built from scratch

	"github.com/robfig/cron/v3"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// FieldError is a value in a specification that cannot be parsed.
type FieldError struct {
	// Reason is one of the reasons in v1alpha1 for condition Valid.
	Reason string
	// Field is the path of the field, and Value its value.
	Field, Value string
	// Problem says what is wrong and what to write instead.
	Problem string
}

// String returns a sentence for the user who wrote the value.
func (f FieldError) String() string { return fmt.Sprintf("%s %q %s", f.Field, f.Value, f.Problem) }

// Parse parses windows. If it returns errors, the Timetable must not be used.
func Parse(windows []v1alpha1.Window) (Timetable, []FieldError) {
	var t Timetable
	var faults []FieldError
	for i, w := range windows {
		path := fmt.Sprintf("spec.windows[%d]", i)
		zone, fault := parseZone(path+".timeZone", w.TimeZone)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		for _, l := range []struct {
			name  string
			text  v1alpha1.Cron
			power hivev1.PowerState
		}{{"hibernate", w.Hibernate, hivev1.PowerHibernating}, {"resume", w.Resume, hivev1.PowerRunning}} {
			if l.text == "" {
				continue
			}
			rule, fault := parseCron(path+"."+l.name, string(l.text))
			if fault != nil {
				faults = append(faults, *fault)
				continue
			}
			t.lines = append(t.lines, cronLine{rule: rule, clock: clock{zone}, power: l.power})
		}
	}
	return t, faults
}

// parseZone parses a zone's name. It rejects "Local", Go's name for the machine's own zone,
// because the result must not depend on where the controllers run.
func parseZone(field, name string) (*time.Location, *FieldError) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, &FieldError{
			Reason: v1alpha1.ReasonInvalidTimeZone, Field: field, Value: name,
			Problem: "is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin",
		}
	}
	return zone, nil
}

// cronParser parses the time and date fields of crontab(5), and nothing more: no seconds, no
// @daily, and no @every, whose period would depend on when hotspare was started.
var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// searchStart is where the search for a rule's first slot begins.
var searchStart = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

const cronHint = "write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri"

func parseCron(field, text string) (cron.Schedule, *FieldError) {
	fault := &FieldError{Reason: v1alpha1.ReasonInvalidCron, Field: field, Value: text}
	// A zone in the expression would contradict timeZone, and this parser panics on a zone that
	// is not followed by anything.
	if strings.Contains(text, "=") {
		fault.Problem = "is not a cron expression: put the zone in timeZone and " + cronHint
		return nil, fault
	}
	rule, err := cronParser.Parse(text)
	if err != nil {
		fault.Problem = fmt.Sprintf("is not a cron expression (%v): %s", err, cronHint)
		return nil, fault
	}
	if rule.Next(searchStart).IsZero() {
		fault.Problem = "never occurs: use a day that the month has"
		return nil, fault
	}
	return rule, nil
}
