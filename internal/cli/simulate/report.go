package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
)

// Report is the output for programs. Fields may be added, but never changed or removed.
type Report struct {
	Trace     string    `json:"trace"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Objective float64   `json:"objective"`
	// MaxWaitSeconds is how long a claim may wait within the objective.
	MaxWaitSeconds float64         `json:"maxWaitSeconds"`
	Policies       []Row           `json:"policies"`
	Hindsight      []Row           `json:"hindsight"`
	Prices         *sizing.Prices  `json:"prices,omitempty"`
	Notes          []string        `json:"notes"`
	Schedule       []ScheduleEntry `json:"weeklySchedule,omitempty"`
}

// A Row is the result of one policy.
type Row struct {
	Policy string `json:"policy"`
	simulate.Result
	// IdleComparedPercent is by how many percent more clusters ran idle than with the best static
	// setting in hindsight; nil if it is unknown.
	IdleComparedPercent *float64 `json:"idleComparedPercent,omitempty"`
	// FallbackHours is how long auto kept the owner's setting, including what it learned from.
	FallbackHours float64 `json:"fallbackHours,omitempty"`
	// Static is the owner's setting of auto.
	Static *sizing.Setting `json:"static,omitempty"`
}

// A ScheduleEntry is one hour of the best weekly schedule.
type ScheduleEntry struct {
	Day     string `json:"day"`
	Hour    int    `json:"hour"`
	Running int    `json:"running"`
}

func (s *study) replay(q *options) (Report, error) {
	r := Report{
		Trace: q.trace, From: s.options.From, To: s.options.To, Objective: s.share, MaxWaitSeconds: s.maxWait.Seconds(),
		Hindsight: []Row{}, Notes: append([]string{}, s.trace.Notes...),
	}
	if s.priced {
		r.Prices = &s.options.Prices
	} else {
		r.Notes = append(r.Notes, "no prices: the cost is not computed; add --prices running=1.2,hibernating=0.1")
	}
	policies := make([]simulate.Policy, len(q.policies))
	for i, text := range q.policies {
		var err error
		if policies[i], err = s.parsePolicy(text); err != nil {
			return r, base.NewUsageError(err)
		}
	}
	r.Notes = append(append(r.Notes, s.notes...), s.limitNotes()...)
	for i, p := range policies {
		a, isAuto := p.(*simulate.Auto)
		if isAuto {
			a.From = s.options.From
		}
		s.progress.beginStep(q.policies[i])
		row := Row{Policy: q.policies[i], Result: simulate.ReplayAny(s.trace, p, s.options, s.maxWait)}
		if isAuto {
			row.FallbackHours = float64(a.Fallbacks) / 60
			row.Static = &a.Given.Static
			r.Notes = append(r.Notes, s.autoNotes(q.policies[i], a)...)
		}
		r.Policies = append(r.Policies, row)
	}
	if !q.noHindsight {
		s.addHindsight(&r)
	}
	for _, row := range slices.Concat(r.Policies, r.Hindsight) {
		if row.Unserved > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %d of its claims had no cluster 30 days after the end: they count as late, and their waits are left out",
				row.Policy, row.Unserved))
		}
	}
	return r, nil
}

// limitNotes says what limits of the pool do in a simulation that does not know when claims are released.
func (s *study) limitNotes() []string {
	isHeld := func(c simulate.Claim) bool { return c.Held > 0 }
	if s.options.MaxSize == nil && s.options.MaxConcurrent == nil || slices.ContainsFunc(s.trace.Claims, isHeld) {
		return nil
	}
	return []string{"no claim has held_seconds: all count as released at once, so the limits of the pool delay fewer claims than they would"}
}

// autoNotes says what to know of the results of a policy that sizes the pool.
func (s *study) autoNotes(name string, a *simulate.Auto) []string {
	var out []string
	if aim := (sizing.Objective{Share: s.share, MaxWait: s.maxWait}); a.Given.Objective != aim {
		out = append(out, fmt.Sprintf("%s has another objective than the settings in hindsight: %s. To compare them, set --at-once and --max-wait",
			name, describeObjective(a.Given.Objective.Share, a.Given.Objective.MaxWait)))
	}
	if share := float64(a.FallbacksAfter) / s.options.To.Sub(s.options.From).Minutes(); share >= 0.005 {
		out = append(out, fmt.Sprintf("%s kept the setting that the owner would have chosen, %d running of %d, in %.0f%% of the time of the results: %s",
			name, a.Given.Static.Running, a.Given.Static.Size, 100*min(share, 1), a.FallbackReason))
	}
	return out
}

// addHindsight adds the best static setting and the best weekly schedule that somebody who knows the
// trace could have chosen.
func (s *study) addHindsight(r *Report) {
	s.progress.beginStep("the best static setting in hindsight")
	setting, static := simulate.BestStatic(s.trace, s.options, s.share, s.maxWait)
	s.progress.beginStep("the best weekly schedule in hindsight")
	weekly, scheduled := simulate.BestWeekly(s.trace, s.options, s.share, s.maxWait, s.zone)
	r.Hindsight = []Row{
		{Policy: fmt.Sprintf("static:%d in hindsight", setting.Running), Result: static},
		{Policy: "weekly in hindsight", Result: scheduled},
	}
	for _, row := range r.Hindsight {
		if row.Within < s.share {
			r.Notes = append(r.Notes, fmt.Sprintf("%s serves fewer claims than the objective: %s. No such setting was found that serves more with these limits, durations and failures",
				row.Policy, formatShare(row.Within)))
		}
	}
	for h, n := range weekly.Running {
		r.Schedule = append(r.Schedule, ScheduleEntry{Day: time.Weekday(h / 24).String()[:3], Hour: h % 24, Running: n})
	}
	for _, rows := range [][]Row{r.Policies, r.Hindsight} {
		for i := range rows {
			if idle := static.Hours.RunningIdle; idle > 0 {
				percent := math.Round(1000*(rows[i].Hours.RunningIdle/idle-1)) / 10
				rows[i].IdleComparedPercent = &percent
			}
		}
	}
}

func describeObjective(share float64, maxWait time.Duration) string {
	percent := math.Round(1e6*share) / 1e4
	if maxWait > 0 {
		return fmt.Sprintf("%g%% of the claims wait at most %s", percent, maxWait)
	}
	return fmt.Sprintf("%g%% of the claims get a running cluster at once", percent)
}

func (a commands) writeReport(w io.Writer, r Report) error {
	about := base.NewTable()
	about.AddRow("Trace", r.Trace)
	about.AddRow("Results", fmt.Sprintf("%s claims from %s to %s", base.FormatNumber(r.Policies[0].Claims), r.From.Format(time.RFC3339), r.To.Format(time.RFC3339)))
	about.AddRow("Objective", describeObjective(r.Objective, time.Duration(r.MaxWaitSeconds)*time.Second))
	columns := []string{"POLICY", "AT ONCE"}
	if r.MaxWaitSeconds > 0 {
		columns = append(columns, "IN TIME")
	}
	t := base.NewTable(append(columns, "P50", "P90", "P99", "MAX WAIT", "IDLE", "COMPARED", "RESUMING", "HIBERNATED", "INSTALLING", "COST")...)
	for _, row := range append(append([]Row{}, r.Policies...), r.Hindsight...) {
		cells := []string{row.Policy, formatShare(row.Immediate)}
		if r.MaxWaitSeconds > 0 {
			cells = append(cells, formatShare(row.Within))
		}
		t.AddRow(append(cells, formatWait(row.Waits.P50), formatWait(row.Waits.P90), formatWait(row.Waits.P99), formatWait(row.Waits.Max),
			formatHours(row.Hours.RunningIdle), formatCompared(row.IdleComparedPercent), formatHours(row.Hours.Resuming),
			formatHours(row.Hours.Hibernating), formatHours(row.Hours.Installing), formatCost(row.Cost, r.Prices != nil))...)
	}
	return a.WriteSections(w, about, t)
}

// formatShare rounds down, so that it does not promise too much.
func formatShare(x float64) string { return fmt.Sprintf("%.2f%%", math.Floor(x*10000+1e-9)/100) }

func formatWait(seconds float64) string {
	return (time.Duration(seconds) * time.Second).String()
}

func formatHours(h float64) string { return fmt.Sprintf("%.0fh", h) }

func formatCompared(percent *float64) string {
	if percent == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", *percent)
}

func formatCost(cost float64, known bool) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.0f", cost)
}
