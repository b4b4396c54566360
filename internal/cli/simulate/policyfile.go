package simulate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/calendar"
)

// policyFile is a file for --policy.
type policyFile struct {
	Objective *objectiveFile  `json:"objective,omitempty"`
	Running   sizing.Range    `json:"running"`
	Size      sizing.Range    `json:"size"`
	Budget    *float64        `json:"budget,omitempty"`
	TimeZone  string          `json:"timeZone,omitempty"`
	Static    *sizing.Setting `json:"static,omitempty"`
	Calendar  []calendar.Item `json:"calendar,omitempty"`
	Method    sizing.Method   `json:"method,omitzero"`
}

type objectiveFile struct {
	// Immediate is a percentage of claims; MaxWait and Quantile are used instead of it.
	Immediate float64 `json:"immediate,omitempty"`
	MaxWait   string  `json:"maxWait,omitempty"`
	Quantile  float64 `json:"quantile,omitempty"`
}

// parsePolicy returns a policy and its name.
func (s *study) parsePolicy(text string) (simulate.Policy, error) {
	switch kind, value, _ := strings.Cut(text, ":"); {
	case text == "auto":
		return s.newAuto(policyFile{})
	case kind == "static":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxRunning {
			return nil, fmt.Errorf("--policy %q has no number of clusters from 0 to %d: write static:3", text, maxRunning)
		}
		return simulate.Static{Running: n, Size: max(n, s.ampleSize())}, nil
	case kind == "schedule":
		return s.readSchedule(value)
	case strings.HasSuffix(text, ".yaml"), strings.HasSuffix(text, ".yml"), strings.HasSuffix(text, ".json"):
		return s.readPolicy(text)
	default:
		return nil, fmt.Errorf("--policy %q is not known: use auto, static:N, schedule:FILE or FILE.yaml", text)
	}
}

const maxRunning = 5000

func (s *study) ampleSize() int { return simulate.AmpleSize(s.trace, s.options, s.maxWait) }

func (s *study) readPolicy(path string) (simulate.Policy, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	var f policyFile
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return nil, fmt.Errorf("%s is not a policy: %w: docs/sizing.md has an example", path, err)
	}
	p, err := s.newAuto(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// newAuto returns the policy that a file describes. The owner's own setting, if the file has none, is
// the best static setting of the part that is only learned from: what an owner would have chosen.
func (s *study) newAuto(f policyFile) (simulate.Policy, error) {
	objective, err := f.Objective.parse(sizing.Objective{Share: s.share, MaxWait: s.maxWait})
	if err != nil {
		return nil, err
	}
	if err := f.check(s); err != nil {
		return nil, err
	}
	days, err := calendar.Parse(f.Calendar)
	if err != nil {
		return nil, err
	}
	a := &simulate.Auto{Zone: f.TimeZone, Method: f.Method, Given: sizing.Snapshot{
		Objective: objective, Calendar: days,
		Limits:    sizing.Limits{Running: f.Running, Size: f.Size, Prices: s.options.Prices},
		Durations: sizing.Durations{Resume: s.options.Resume.P90(), Install: s.options.Install.P90()},
	}}
	if f.TimeZone == "" {
		a.Zone = s.zone.String()
	}
	if f.Budget != nil {
		a.Given.Limits.Budget = sizing.Budget{Set: true, Limit: *f.Budget}
	}
	if f.Static != nil {
		a.Given.Static = *f.Static
		return a, nil
	}
	before := s.options
	before.From, before.To, before.Samples = s.trace.Begin(), s.options.From, 0
	if before.From.Equal(before.To) {
		a.Given.Static = sizing.Setting{Running: 1, Size: 2}
		return a, nil
	}
	a.Given.Static, _ = simulate.BestStatic(s.trace, before, objective.Share, objective.MaxWait)
	return a, nil
}

func (f policyFile) check(s *study) error {
	for _, r := range []struct {
		field string
		sizing.Range
	}{{"running", f.Running}, {"size", f.Size}} {
		switch {
		case r.Min < 0 || r.Max < 0:
			return fmt.Errorf("%s.min and %s.max must be 0 or more", r.field, r.field)
		case r.Max > 0 && r.Min > r.Max:
			return fmt.Errorf("%s.min %d is above %s.max %d: lower the one or raise the other", r.field, r.Min, r.field, r.Max)
		}
	}
	if f.Static != nil && (f.Static.Running < 0 || f.Static.Size < f.Static.Running) {
		return fmt.Errorf("static.running %d is not from 0 to static.size %d", f.Static.Running, f.Static.Size)
	}
	if f.TimeZone != "" {
		if _, err := time.LoadLocation(f.TimeZone); err != nil || f.TimeZone == "Local" {
			return fmt.Errorf("timeZone %q is not a time zone: use a name from the IANA database, such as Europe/Berlin", f.TimeZone)
		}
	}
	if f.Budget == nil {
		return nil
	}
	if *f.Budget <= 0 {
		return fmt.Errorf("budget %g buys no cluster: remove it for no limit", *f.Budget)
	}
	if s.options.Prices.Running <= 0 {
		return errors.New("budget needs prices: add --prices running=1.2,hibernating=0.1")
	}
	return nil
}

func (o *objectiveFile) parse(byDefault sizing.Objective) (sizing.Objective, error) {
	if o == nil {
		return byDefault, nil
	}
	if o.Immediate != 0 && (o.MaxWait != "" || o.Quantile != 0) {
		return byDefault, errors.New("objective has both immediate and maxWait: keep one of them")
	}
	field, percent := "objective.immediate", o.Immediate
	out := sizing.Objective{}
	if o.Immediate == 0 {
		wait, err := time.ParseDuration(o.MaxWait)
		if err != nil || wait < 0 {
			return out, fmt.Errorf("objective.maxWait %q is not a duration: write one such as 2m, or set objective.immediate", o.MaxWait)
		}
		field, percent, out.MaxWait = "objective.quantile", o.Quantile, wait
	}
	if percent <= 0 || percent >= 100 {
		return out, fmt.Errorf("%s %g is not above 0 and below 100: no pool can serve every claim; 99.9 is possible", field, percent)
	}
	out.Share = percent / 100
	return out, nil
}

// scheduleFile is a file for --policy schedule:FILE.
type scheduleFile struct {
	TimeZone string `json:"timeZone,omitempty"`
	// Running is the count outside of all Hours; Size that of all clusters.
	Running int         `json:"running"`
	Size    int         `json:"size,omitempty"`
	Hours   []hoursFile `json:"hours"`
}

type hoursFile struct {
	Days    string `json:"days"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	Running int    `json:"running"`
}

func (s *study) readSchedule(path string) (simulate.Policy, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the schedule: %w", err)
	}
	var f scheduleFile
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return nil, fmt.Errorf("%s is not a schedule: %w: docs/sizing.md has an example", path, err)
	}
	w := &simulate.Weekly{Size: f.Size, Zone: s.zone}
	if f.TimeZone != "" {
		if w.Zone, err = time.LoadLocation(f.TimeZone); err != nil || f.TimeZone == "Local" {
			return nil, fmt.Errorf("%s: timeZone %q is not a time zone: use a name from the IANA database, such as Europe/Berlin", path, f.TimeZone)
		}
	}
	if f.Running < 0 || f.Running > maxRunning || f.Size < 0 || f.Size > maxRunning {
		return nil, fmt.Errorf("%s: running and size must be from 0 to %d", path, maxRunning)
	}
	for h := range w.Running {
		w.Running[h] = f.Running
	}
	for i, h := range f.Hours {
		if err := h.apply(w); err != nil {
			return nil, fmt.Errorf("%s: hours[%d].%w", path, i, err)
		}
	}
	if f.Size == 0 {
		w.Size = max(s.ampleSize(), w.Most())
	}
	return w, nil
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (h hoursFile) apply(w *simulate.Weekly) error {
	first, last, isRange := strings.Cut(strings.ToLower(h.Days), "-")
	if !isRange {
		last = first
	}
	from, to := findDay(first), findDay(last)
	switch {
	case from < 0 || to < 0:
		return fmt.Errorf("days %q is not a day or a range of days: write mon or mon-fri", h.Days)
	case h.From < 0 || h.To > 24 || h.From >= h.To:
		return fmt.Errorf("from %d and to %d are not hours from 0 to 24: write from: 8, to: 18", h.From, h.To)
	case h.Running < 0 || h.Running > maxRunning:
		return fmt.Errorf("running %d is not from 0 to %d", h.Running, maxRunning)
	}
	for d := from; ; d = (d + 1) % len(dayNames) {
		for hour := h.From; hour < h.To; hour++ {
			w.Running[d*24+hour] = h.Running
		}
		if d == to {
			return nil
		}
	}
}

func findDay(name string) int {
	for i, d := range dayNames {
		if d == name {
			return i
		}
	}
	return -1
}
