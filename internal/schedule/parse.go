package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no time zones, as an image from scratch

	"github.com/robfig/cron/v3"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Fault is a value in a specification that cannot be understood.
type Fault struct {
	// Reason is one of v1alpha1's for condition Valid.
	Reason string
	// Field is its path, and Value what stands there.
	Field, Value string
	// Why is what is wrong and what to write instead.
	Why string
}

// String is a sentence for the one who wrote the value.
func (f Fault) String() string { return fmt.Sprintf("%s %q %s", f.Field, f.Value, f.Why) }

// Parse reads windows. With a fault, the timetable is of no use.
func Parse(windows []v1alpha1.Window) (Timetable, []Fault) {
	var t Timetable
	var faults []Fault
	for i, w := range windows {
		path := fmt.Sprintf("spec.windows[%d]", i)
		zone, fault := zoneOf(path+".timeZone", w.TimeZone)
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
			rule, fault := cronOf(path+"."+l.name, string(l.text))
			if fault != nil {
				faults = append(faults, *fault)
				continue
			}
			t.lines = append(t.lines, line{rule: rule, clock: clock{zone}, power: l.power})
		}
	}
	return t, faults
}

// zoneOf reads a zone's name. Go's own name for the machine's zone is none: where
// the controllers run should not matter.
func zoneOf(field, name string) (*time.Location, *Fault) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, &Fault{
			Reason: v1alpha1.ReasonInvalidTimeZone, Field: field, Value: name,
			Why: "is no time zone: use a name of the IANA database, such as UTC or Europe/Berlin",
		}
	}
	return zone, nil
}

// fields reads what crontab(5) calls the time and date fields, and nothing more: no
// seconds, no @daily, no @every, whose beat would depend on when hotspare was started.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// sometime is where the search for a rule's first slot begins.
var sometime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

const remedy = "write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri"

func cronOf(field, text string) (cron.Schedule, *Fault) {
	fault := &Fault{Reason: v1alpha1.ReasonInvalidCron, Field: field, Value: text}
	// A zone in the expression would contradict timeZone; and this parser panics on
	// one that nothing follows.
	if strings.Contains(text, "=") {
		fault.Why = "is no cron expression: put the zone in timeZone and " + remedy
		return nil, fault
	}
	rule, err := fields.Parse(text)
	if err != nil {
		fault.Why = fmt.Sprintf("is no cron expression (%v): %s", err, remedy)
		return nil, fault
	}
	if rule.Next(sometime).IsZero() {
		fault.Why = "never comes: name a day that the month has"
		return nil, fault
	}
	return rule, nil
}
