package claim

import (
	"errors"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestExtend(t *testing.T) {
	const hour = time.Hour
	assigned := now.Add(-hour)
	until := func(in time.Duration) extension { return extension{until: now.Add(in)} }
	for name, c := range map[string]struct {
		term term
		e    extension
		want string
	}{
		"by an amount":                         {term{assigned, 8 * hour, 0}, extension{by: 2 * hour}, "10h"},
		"to a lifetime":                        {term{assigned, 8 * hour, 0}, extension{lifetime: 9 * hour}, "9h"},
		"until a time":                         {term{assigned, 8 * hour, 0}, until(9 * hour), "10h"},
		"until a time between seconds":         {term{assigned, 8 * hour, 0}, until(9*hour + 1), "10h0m1s"},
		"a claim that waits":                   {term{time.Time{}, 8 * hour, 0}, extension{by: hour}, "9h"},
		"a claim that is nearly over":          {term{assigned, hour + 1, 0}, extension{by: hour}, "2h0m0.000000001s"},
		"a claim that is over and still there": {term{assigned, hour / 2, 0}, extension{by: hour}, "1h30m"},
		"up to the maximum":                    {term{assigned, 8 * hour, 12 * hour}, extension{by: 4 * hour}, "12h"},
		"beyond the maximum":                   {term{assigned, 8 * hour, 12 * hour}, extension{by: 5 * hour}, "the longest lifetime of this claim is 12h, until 2026-11-21T23:00:00Z"},
		"beyond the maximum while it waits":    {term{time.Time{}, 8 * hour, 12 * hour}, extension{lifetime: 13 * hour}, "the longest lifetime of this claim is 12h"},
		"beyond ten years":                     {term{assigned, 8 * hour, 0}, extension{by: hivev1.MaxDuration}, "a lifetime of more than ten years is not valid"},
		"to less":                              {term{assigned, 8 * hour, 0}, extension{lifetime: 7 * hour}, "it already has a lifetime of 8h, until 2026-11-21T19:00:00Z, and an extension only lengthens that"},
		"to the same":                          {term{assigned, 8 * hour, 0}, until(7 * hour), "it already has a lifetime of 8h, until 2026-11-21T19:00:00Z, and an extension only lengthens that"},
		"until the past":                       {term{assigned, 8 * hour, 0}, until(-2 * hour), "it already has a lifetime of 8h, until 2026-11-21T19:00:00Z, and an extension only lengthens that"},
		"to an end that is over":               {term{assigned, hour / 2, 0}, extension{by: time.Minute}, "a lifetime of 31m has already ended, at 2026-11-21T11:31:00Z"},
		"a claim without an end":               {term{assigned, 0, 0}, extension{lifetime: hour}, "it has no lifetime that could end: it keeps its cluster until you release it"},
		"until a time while it waits":          {term{time.Time{}, 8 * hour, 0}, until(9 * hour), "its lifetime begins when it gets a cluster, and it has none yet: use --by or --lifetime"},
	} {
		t.Run(name, func(t *testing.T) {
			longer, err := c.term.extend(c.e, now)
			got := formatLifetimeOr(longer, err)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func formatLifetimeOr(lifetime time.Duration, err error) string {
	if err != nil {
		return err.Error()
	}
	return formatLifetime(lifetime)
}

// An extension never shortens a lifetime, and never exceeds the pool's maximum.
func TestExtensionsStayWithinTheirBounds(t *testing.T) {
	steps := []time.Duration{0, 1, time.Second, time.Minute, time.Hour, 24 * time.Hour, hivev1.MaxDuration}
	for _, lifetime := range steps[1:] {
		for _, maximum := range steps {
			for _, e := range steps[1:] {
				for _, x := range []extension{{by: e}, {lifetime: e}, {until: now.Add(e)}} {
					tm := term{now.Add(-time.Minute), lifetime, maximum}
					longer, err := tm.extend(x, now)
					switch {
					case err == nil && (longer <= lifetime || maximum > 0 && longer > maximum || longer > hivev1.MaxDuration):
						t.Errorf("%+v extended by %+v: %s", tm, x, longer)
					case errors.As(err, new(maximumError)) && maximum == 0 && e < hivev1.MaxDuration && lifetime < hivev1.MaxDuration:
						t.Errorf("%+v extended by %+v: %v", tm, x, err)
					}
				}
			}
		}
	}
}

func TestExtendNeedsOneValidFlag(t *testing.T) {
	for _, o := range []extendOptions{{}, {by: -1}, {by: 1, lifetime: 1}, {until: "2026-11-21T18:00:00Z", by: 1}, {lifetime: -time.Hour}, {by: hivev1.MaxDuration + 1}, {until: "18:00"}} {
		if e, err := o.parse(); err == nil {
			t.Errorf("%+v is accepted: %+v", o, e)
		}
	}
}
