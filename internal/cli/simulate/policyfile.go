package simulate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/policy"
)

// policyFile is a file for --policy: the spec of a PoolPolicy, and what only a simulation needs.
type policyFile struct {
	v1alpha1.PoolPolicySpec `json:",inline"`
	// Static is the owner's own setting.
	Static *sizing.Setting `json:"static,omitempty"`
	Method sizing.Method   `json:"method,omitzero"`
}

// policyManifest is a PoolPolicy as a file for --policy.
type policyManifest struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Spec       policyFile     `json:"spec"`
	Status     map[string]any `json:"status,omitempty"`
}

// parsePolicy returns a policy and its name.
func (s *study) parsePolicy(text string) (simulate.Policy, error) {
	switch kind, value, _ := strings.Cut(text, ":"); {
	case text == "auto":
		return s.newAuto(s.own)
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
	f, err := decodePolicy(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is not a policy: %w: docs/sizing.md has an example", path, err)
	}
	p, err := s.newAuto(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// decodePolicy reads the spec of a PoolPolicy, or a PoolPolicy.
func decodePolicy(raw []byte) (policyFile, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(raw, &head); err == nil && head.Kind == "PoolPolicy" {
		var m policyManifest
		err := yaml.UnmarshalStrict(raw, &m)
		return m.Spec, err
	}
	var f policyFile
	err := yaml.UnmarshalStrict(raw, &f)
	return f, err
}

// newAuto returns the policy that a file describes. The owner's own setting, if the file has none, is
// the best static setting of the part that is only learned from: what an owner would have chosen.
func (s *study) newAuto(f policyFile) (simulate.Policy, error) {
	f.Mode = "" // a simulation has no pool to change
	p, faults := policy.Parse(f.PoolPolicySpec, policy.Defaults{
		Objective: sizing.Objective{Share: s.share, MaxWait: s.maxWait}, TimeZone: s.zone.String(), Prices: s.options.Prices,
	})
	if len(faults) > 0 {
		return nil, joinFaults(faults)
	}
	if f.Static != nil && (f.Static.Running < 0 || f.Static.Size < f.Static.Running || f.Static.Size > maxRunning) {
		return nil, fmt.Errorf("static.running %d is not from 0 to static.size %d, or static.size is more than %d: correct them", f.Static.Running, f.Static.Size, maxRunning)
	}
	if f.Sleep != nil && len(s.options.Sleep) == 0 {
		s.notes = append(s.notes, "spec.sleep of the policy is left out: set the ladder of depths with --sleep")
	}
	if most := s.options.MaxSize; most != nil && (p.Limits.Size.Max == 0 || *most < p.Limits.Size.Max) {
		if p.Limits.Size.Max = *most; *most <= 0 {
			p.Limits.Size.Max = sizing.None
		}
	}
	a := &simulate.Auto{Zone: p.Zone.String(), Method: f.Method, Given: sizing.Snapshot{
		Objective: p.Objective, Calendar: p.Calendar, Limits: p.Limits,
		Durations: s.options.Durations(),
	}}
	if f.Static != nil {
		a.Given.Static = *f.Static
		return a, nil
	}
	before := s.options
	before.From, before.To, before.Samples = s.trace.Begin(), s.options.From, 0
	if !before.From.Before(before.To) {
		a.Given.Static = sizing.Setting{Running: 1, Size: 2}
		return a, nil
	}
	a.Given.Static, _ = simulate.BestStatic(s.trace, before, p.Objective.Share, p.Objective.MaxWait)
	return a, nil
}

func joinFaults(faults []policy.FieldError) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, f)
	}
	return errors.New(fault.OneLine(errors.Join(errs...)))
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
