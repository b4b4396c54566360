package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// slotsIn are the first slots of an expression after a moment, as the zone's clocks
// and calendars show them.
func slotsIn(t *testing.T, zone, text, after string, n int) []string {
	t.Helper()
	table, faults := Parse([]v1alpha1.Window{{Hibernate: v1alpha1.Cron(text), TimeZone: zone}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for range n {
		at = table.NextSlot(at).At
		out = append(out, at.In(loc).Format("Jan 2 15:04 -0700"))
	}
	return out
}

func TestSlotsWhenClocksChange(t *testing.T) {
	for name, tc := range map[string]struct{ zone, cron, after, want string }{
		"what the leap leaves out counts at the leap": {
			"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z",
			"Mar 28 02:30 +0100, Mar 29 03:00 +0200, Mar 30 02:30 +0200",
		},
		"what comes twice counts the first time": {
			"Europe/Berlin", "30 2 * * *", "2026-10-24T00:00:00Z",
			"Oct 24 02:30 +0200, Oct 25 02:30 +0200, Oct 26 02:30 +0100",
		},
		"asked in the second of two hours, the next is tomorrow": {
			"Europe/Berlin", "30 2 * * *", "2026-10-25T01:10:00Z",
			"Oct 26 02:30 +0100, Oct 27 02:30 +0100, Oct 28 02:30 +0100",
		},
		"in New York, forward": {
			"America/New_York", "30 2 * * *", "2026-03-07T06:00:00Z",
			"Mar 7 02:30 -0500, Mar 8 03:00 -0400, Mar 9 02:30 -0400",
		},
		"in New York, back": {
			"America/New_York", "15 1 * * *", "2026-10-31T05:00:00Z",
			"Oct 31 01:15 -0400, Nov 1 01:15 -0400, Nov 2 01:15 -0500",
		},
		"every hour, the hour that comes twice has one": {
			"Europe/Berlin", "0 * * * *", "2026-10-24T23:30:00Z",
			"Oct 25 02:00 +0200, Oct 25 03:00 +0100, Oct 25 04:00 +0100",
		},
		"every quarter, the hour left out has none but the leap itself": {
			"Europe/Berlin", "*/15 1-3 * * *", "2026-03-29T00:40:00Z",
			"Mar 29 01:45 +0100, Mar 29 03:00 +0200, Mar 29 03:15 +0200",
		},
		"half an hour on Lord Howe Island, forward": {
			"Australia/Lord_Howe", "15 2 * * *", "2026-10-02T15:00:00Z",
			"Oct 3 02:15 +1030, Oct 4 02:30 +1100, Oct 5 02:15 +1100",
		},
		"half an hour on Lord Howe Island, back": {
			"Australia/Lord_Howe", "45 1 * * *", "2026-04-03T15:00:00Z",
			"Apr 5 01:45 +1100, Apr 6 01:45 +1030, Apr 7 01:45 +1030",
		},
		"midnight is left out in Cairo": {
			"Africa/Cairo", "0 0 * * *", "2026-04-22T23:00:00Z",
			"Apr 24 01:00 +0300, Apr 25 00:00 +0300, Apr 26 00:00 +0300",
		},
		"midnight comes twice in Havana": {
			"America/Havana", "30 0 * * *", "2026-10-31T12:00:00Z",
			"Nov 1 00:30 -0400, Nov 2 00:30 -0500, Nov 3 00:30 -0500",
		},
		"a whole day was left out in Samoa": {
			"Pacific/Apia", "0 12 * * *", "2011-12-29T12:00:00Z",
			"Dec 29 12:00 -1000, Dec 31 00:00 +1400, Dec 31 12:00 +1400",
		},
		"winter is the odd time in Dublin": {
			"Europe/Dublin", "30 1 * * *", "2026-10-24T12:00:00Z",
			"Oct 25 01:30 +0100, Oct 26 01:30 +0000, Oct 27 01:30 +0000",
		},
		"Kathmandu has odd minutes": {
			"Asia/Kathmandu", "0 19 * * mon-fri", "2026-11-20T12:00:00Z",
			"Nov 20 19:00 +0545, Nov 23 19:00 +0545, Nov 24 19:00 +0545",
		},
		"UTC never leaps": {
			"UTC", "30 2 * * *", "2026-03-28T12:00:00Z",
			"Mar 29 02:30 +0000, Mar 30 02:30 +0000, Mar 31 02:30 +0000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, strings.Join(slotsIn(t, tc.zone, tc.cron, tc.after, 3), ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The reason why the library is asked for what a clock shows, and not for moments:
// its documentation says that what lies in a leap is not run at all, and what comes
// twice comes twice. If a new version does better, clock can go.
func TestTheLibraryByItselfSkipsAndRepeats(t *testing.T) {
	rule, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	if got := rule.Next(at).UTC(); !got.Equal(time.Date(2026, 3, 30, 0, 30, 0, 0, time.UTC)) {
		t.Errorf("in spring it gives %s", got)
	}
	at = time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	first := rule.Next(at)
	if again := rule.Next(first).Sub(first); again != time.Hour {
		t.Errorf("in autumn the second comes %s after the first", again)
	}
}

func TestLastIsTheSlotThatHolds(t *testing.T) {
	day := func(d, h, m int) time.Time { return time.Date(2026, 11, d, h, m, 0, 0, time.UTC) }
	nights := []v1alpha1.Window{{Hibernate: "0 19 * * mon-fri", Resume: "0 8 * * mon-fri", TimeZone: "UTC"}}
	for name, tc := range map[string]struct {
		windows      []v1alpha1.Window
		after, until time.Time
		want         string
	}{
		"in the evening it is the hibernation": {nights, day(1, 0, 0), day(20, 23, 0), "2026-11-20T19:00:00Z Hibernating"},
		"over the weekend, too":                {nights, day(1, 0, 0), day(23, 7, 59), "2026-11-20T19:00:00Z Hibernating"},
		"the slot's own minute counts":         {nights, day(1, 0, 0), day(23, 8, 0), "2026-11-23T08:00:00Z Running"},
		"what is not after the bound is none":  {nights, day(20, 19, 0), day(23, 7, 0), ""},
		"of several missed slots the last":     {nights, day(2, 0, 0), day(19, 12, 0), "2026-11-19T08:00:00Z Running"},
		"of two at one moment the one that wakes": {
			[]v1alpha1.Window{{Hibernate: "0 8 * * *", TimeZone: "UTC"}, {Resume: "0 9 * * *", TimeZone: "Europe/Berlin"}},
			day(2, 0, 0), day(3, 12, 0), "2026-11-03T08:00:00Z Running",
		},
		"years back": {[]v1alpha1.Window{{Hibernate: "0 0 29 2 *"}}, day(1, 0, 0).AddDate(-20, 0, 0), day(1, 0, 0), "2024-02-29T00:00:00Z Hibernating"},
	} {
		t.Run(name, func(t *testing.T) {
			table, faults := Parse(tc.windows)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if got := table.LastSlot(tc.after, tc.until).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFaultsNameFieldValueAndRemedy(t *testing.T) {
	const write = "write minute, hour, day of month, month and day of week, such as 0 19 * * mon-fri"
	for name, tc := range map[string]struct {
		window v1alpha1.Window
		want   string
	}{
		"an hour that no day has":     {v1alpha1.Window{Hibernate: "0 25 * * *"}, `InvalidCron: spec.windows[0].hibernate "0 25 * * *" is not a cron expression (end of range (25) above maximum (23): 25): ` + write},
		"an eighth day of the week":   {v1alpha1.Window{Resume: "0 8 * * 7"}, `InvalidCron: spec.windows[0].resume "0 8 * * 7" is not a cron expression (end of range (7) above maximum (6): 7): ` + write},
		"seconds":                     {v1alpha1.Window{Resume: "0 0 8 * * *"}, `InvalidCron: spec.windows[0].resume "0 0 8 * * *" is not a cron expression (expected exactly 5 fields, found 6: [0 0 8 * * *]): ` + write},
		"a nickname":                  {v1alpha1.Window{Resume: "@every 5m"}, `InvalidCron: spec.windows[0].resume "@every 5m" is not a cron expression (parser does not accept descriptors: @every 5m): ` + write},
		"a zone in the expression":    {v1alpha1.Window{Resume: "TZ=UTC"}, `InvalidCron: spec.windows[0].resume "TZ=UTC" is not a cron expression: put the zone in timeZone and ` + write},
		"a day that never comes":      {v1alpha1.Window{Resume: "0 8 30 2 *"}, `InvalidCron: spec.windows[0].resume "0 8 30 2 *" never occurs: use a day that the month has`},
		"a list of nothing":           {v1alpha1.Window{Resume: ", 8 * * *"}, `InvalidCron: spec.windows[0].resume ", 8 * * *" never occurs: use a day that the month has`},
		"a zone that is none":         {v1alpha1.Window{Resume: "0 8 * * *", TimeZone: "Europe/Belin"}, `InvalidTimeZone: spec.windows[0].timeZone "Europe/Belin" is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin`},
		"the zone of a machine":       {v1alpha1.Window{Resume: "0 8 * * *", TimeZone: "Local"}, `InvalidTimeZone: spec.windows[0].timeZone "Local" is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin`},
		"a file that is no time zone": {v1alpha1.Window{Resume: "0 8 * * *", TimeZone: "../passwd"}, `InvalidTimeZone: spec.windows[0].timeZone "../passwd" is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin`},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Parse([]v1alpha1.Window{tc.window})
			if len(faults) != 1 {
				t.Fatalf("got %d faults", len(faults))
			}
			if diff := cmp.Diff(tc.want, faults[0].Reason+": "+faults[0].String()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("all of them are told", func(t *testing.T) {
		if _, faults := Parse([]v1alpha1.Window{{Hibernate: "x", Resume: "y"}, {TimeZone: "z"}}); len(faults) != 3 {
			t.Errorf("got %v", faults)
		}
	})
}

func TestReadSlotReadsWhatStringWrote(t *testing.T) {
	s := Slot{At: time.Date(2026, 11, 20, 19, 0, 0, 0, time.UTC), Power: "Hibernating"}
	if got := ParseSlot(s.String() + " team/nights"); got != s {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"", "yesterday Running", s.At.Format(time.RFC3339), s.At.Format(time.RFC3339) + " Asleep"} {
		if got := ParseSlot(bad); !got.IsZero() {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 19 * * mon-fri", "*/5 1-3,7 ? jan 0", "TZ=", "@daily", "0 0 31 2 *", "*-5/2 * * * *"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text, zone string) {
		table, faults := Parse([]v1alpha1.Window{{Hibernate: v1alpha1.Cron(text), TimeZone: zone}})
		if len(faults) > 0 || text == "" {
			return
		}
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		next := table.NextSlot(at)
		if !next.At.After(at) {
			t.Errorf("the slot after %s is %s", at, next.At)
		}
		if last := table.LastSlot(at, next.At); !last.isSameSlot(next) {
			t.Errorf("the last slot at %s is %s", next.At, last)
		}
	})
}
