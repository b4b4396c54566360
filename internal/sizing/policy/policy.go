// Package policy parses what the owner of a pool promises and allows: the spec of a PoolPolicy, which
// is also the content of a policy file of `hotspare simulate`. It is pure.
package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/calendar"
)

// A Policy is a parsed specification.
type Policy struct {
	// Auto is set if the counts of the pool are to be set, and not only recommended.
	Auto      bool
	Objective sizing.Objective
	// Limits has no spent budget yet.
	Limits sizing.Limits
	// Estimate is what hotspare has estimated for a specification without prices; nil for one that has some. If it has
	// prices, Limits has them.
	Estimate *v1alpha1.EstimatedPrices
	Zone     *time.Location
	Calendar *calendar.Calendar
}

// A FieldError is why a field cannot be used. Its text names the field, the value and the remedy.
type FieldError struct {
	// Reason is one of the reasons of condition Valid.
	Reason string
	// Field is the path below spec.
	Field   string
	Problem string
}

// Error returns the field and the problem.
func (e FieldError) Error() string { return e.Field + " " + e.Problem }

// Defaults are what a specification leaves out.
type Defaults struct {
	Objective sizing.Objective
	TimeZone  string
	Prices    sizing.Prices
	// Estimate takes precedence over Prices; nil if nothing was estimated. One that has no prices says why.
	Estimate *v1alpha1.EstimatedPrices
}

// HubDefaults are the defaults of a PoolPolicy. The schema documents them.
var HubDefaults = Defaults{Objective: sizing.Objective{Share: 0.99}, TimeZone: "UTC"}

// WithEstimate returns the defaults with prices that hotspare has estimated, as status.estimatedPrices has them.
func (d Defaults) WithEstimate(e *v1alpha1.EstimatedPrices) Defaults {
	d.Estimate = e
	return d
}

// prices returns the prices of a specification that has none.
func (d Defaults) prices() sizing.Prices {
	if d.Estimate == nil {
		return d.Prices
	}
	running, hibernating := parseDecimal(v1alpha1.Decimal(d.Estimate.Running)), parseDecimal(v1alpha1.Decimal(d.Estimate.Hibernating))
	if !(running > 0 && hibernating >= 0) {
		return d.Prices
	}
	return sizing.Prices{Running: running, Hibernating: hibernating}
}

// HasEstimatedPrices reports whether the prices of a policy on a hub are estimated.
func (p Policy) HasEstimatedPrices() bool {
	return p.Estimate != nil && p.Limits.Prices != (sizing.Prices{})
}

// Parse parses a specification. The Policy must not be used if there are errors.
func Parse(spec v1alpha1.PoolPolicySpec, d Defaults) (Policy, []FieldError) {
	var p parser
	out := Policy{Objective: d.Objective}
	switch spec.Mode {
	case v1alpha1.PolicyAuto:
		out.Auto = true
	case v1alpha1.PolicyRecommend, "":
	default:
		p.reject(v1alpha1.ReasonInvalidPolicyMode, "mode", "%q is not a mode: use Recommend or Auto", spec.Mode)
	}
	if spec.Objective != nil {
		out.Objective = p.parseObjective(*spec.Objective)
	}
	out.Limits.Running = p.parseLimits("running", spec.Running)
	out.Limits.Size = p.parseLimits("size", spec.Size)
	if out.Auto && out.Limits.Size.Max == 0 {
		p.reject(v1alpha1.ReasonInvalidLimits, "size.max", "is missing, and mode Auto needs it: set the largest number of unclaimed clusters that hotspare may keep")
	}
	p.compareLimits(out.Limits)
	out.Limits.Prices, out.Estimate = d.prices(), d.Estimate
	if spec.Prices != nil {
		out.Limits.Prices, out.Estimate = p.parsePrices(*spec.Prices), nil
	}
	out.Limits.Budget = p.parseBudget(spec.Budget, out)
	name := spec.TimeZone
	if name == "" {
		name = d.TimeZone
	}
	out.Zone = p.parseZone(name)
	out.Calendar = p.parseCalendar(spec.Calendar, name)
	return out, p.faults
}

// parser collects faults.
type parser struct{ faults []FieldError }

func (p *parser) reject(reason, field, format string, args ...any) {
	p.faults = append(p.faults, FieldError{reason, field, fmt.Sprintf(format, args...)})
}

func (p *parser) parseObjective(o v1alpha1.PolicyObjective) sizing.Objective {
	switch {
	case o.Immediate != nil && (o.MaxWait != nil || o.Quantile != nil):
		p.reject(v1alpha1.ReasonInvalidObjective, "objective", "has both immediate and maxWait: keep one of them")
	case o.Immediate != nil:
		return sizing.Objective{Share: p.parseShare("objective.immediate", *o.Immediate)}
	case o.MaxWait == nil || o.Quantile == nil:
		p.reject(v1alpha1.ReasonInvalidObjective, "objective", `is incomplete: write {immediate: "99%%"} or {maxWait: 2m, quantile: "99%%"}`)
	default:
		return sizing.Objective{MaxWait: p.parseMaxWait(*o.MaxWait), Share: p.parseShare("objective.quantile", *o.Quantile)}
	}
	return sizing.Objective{}
}

func (p *parser) parseMaxWait(d hivev1.Duration) time.Duration {
	wait, err := d.Parse()
	if err != nil {
		p.reject(v1alpha1.ReasonInvalidObjective, "objective.maxWait", "%v", err)
	}
	return wait
}

func (p *parser) parseShare(field string, text v1alpha1.Percent) float64 {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(string(text)), "%"), 64)
	if err != nil || math.IsNaN(percent) || percent <= 0 || percent >= 100 {
		p.reject(v1alpha1.ReasonInvalidObjective, field,
			`%q is not a percentage above 0 and below 100: write 99 or "99.9%%"; no pool can serve every claim`, string(text))
		return 0
	}
	return percent / 100
}

// maxCount is the largest limit of a count, as in the schema of the API: a file that simulate reads passes no schema.
const maxCount = 100_000

func (p *parser) parseLimits(field string, l *v1alpha1.CountLimits) sizing.Range {
	var out sizing.Range
	if l == nil {
		return out
	}
	if l.Min != nil {
		if out.Min = int(*l.Min); out.Min < 0 {
			p.reject(v1alpha1.ReasonInvalidLimits, field+".min", "%d is negative: use 0 or more", out.Min)
		}
		p.checkMaximum(field+".min", out.Min)
	}
	if l.Max == nil {
		return out
	}
	out.Max = int(*l.Max)
	p.checkMaximum(field+".max", out.Max)
	switch {
	case out.Max < 1:
		p.reject(v1alpha1.ReasonInvalidLimits, field+".max", "%d is below 1: use 1 or more, or remove it for no limit", out.Max)
	case out.Min > out.Max:
		p.reject(v1alpha1.ReasonInvalidLimits, field+".min", "%d is above %s.max %d: lower the one or raise the other", out.Min, field, out.Max)
	}
	return out
}

func (p *parser) checkMaximum(field string, count int) {
	if count > maxCount {
		p.reject(v1alpha1.ReasonInvalidLimits, field, "%d is above %d: use a smaller one", count, maxCount)
	}
}

// compareLimits checks the limits of both counts against each other: clusters that run exist.
func (p *parser) compareLimits(l sizing.Limits) {
	if l.Size.Max > 0 && l.Running.Min > l.Size.Max {
		p.reject(v1alpha1.ReasonInvalidLimits, "running.min", "%d is above size.max %d, and only clusters that exist can run: lower the one or raise the other",
			l.Running.Min, l.Size.Max)
	}
}

func (p *parser) parsePrices(prices v1alpha1.PolicyPrices) sizing.Prices {
	out := sizing.Prices{Running: parseDecimal(prices.Running)}
	if !(out.Running > 0) {
		p.reject(v1alpha1.ReasonInvalidPrices, "prices.running", `%q is not a number above 0: write the price of one hour of a running cluster, such as "1.2"`, prices.Running)
	}
	if h := p.parsePrice("prices.hibernating", prices.Hibernating); h != nil {
		out.Hibernating = *h
	}
	out.Frozen = p.parsePrice("prices.frozen", prices.Frozen)
	out.Suspended = p.parsePrice("prices.suspended", prices.Suspended)
	out.Stopped = p.parsePrice("prices.stopped", prices.Stopped)
	return out
}

// parsePrice returns nil for a price that is not set.
func (p *parser) parsePrice(field string, price *v1alpha1.Decimal) *float64 {
	if price == nil {
		return nil
	}
	out := parseDecimal(*price)
	if !(out >= 0) {
		p.reject(v1alpha1.ReasonInvalidPrices, field, `%q is not a number of at least 0: write one such as "0.1"`, *price)
	}
	return &out
}

// parseBudget parses the budget of a policy whose prices were parsed.
func (p *parser) parseBudget(budget *v1alpha1.Decimal, of Policy) sizing.Budget {
	if budget == nil {
		return sizing.Budget{}
	}
	out := sizing.Budget{Set: true, Limit: parseDecimal(*budget)}
	switch {
	case out.Limit == 0:
		p.reject(v1alpha1.ReasonInvalidBudget, "budget", "%q buys no cluster: use more than 0, or remove it for no limit", *budget)
	case !(out.Limit > 0):
		p.reject(v1alpha1.ReasonInvalidBudget, "budget", `%q is not a number above 0: write one such as 1500 or "99.5"`, *budget)
	case !(of.Limits.Prices.Running > 0):
		reason := ""
		if of.Estimate != nil {
			reason = "; " + of.Estimate.Basis
		}
		p.reject(v1alpha1.ReasonInvalidBudget, "budget", `%q needs prices: set prices, such as {running: "1.2", hibernating: "0.1"}%s`, *budget, reason)
	}
	return out
}

// parseDecimal returns the number; one that is not finite, or not a number, is NaN.
func parseDecimal(d v1alpha1.Decimal) float64 {
	n, err := strconv.ParseFloat(string(d), 64)
	if err != nil || math.IsInf(n, 0) {
		return math.NaN()
	}
	return n
}

func (p *parser) parseZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		p.reject(v1alpha1.ReasonInvalidTimeZone, "timeZone", "%q is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin", name)
		return time.UTC
	}
	return zone
}

// parseCalendar parses the entries, whose times are in a zone. If the zone is wrong, parseZone says
// so.
func (p *parser) parseCalendar(entries []v1alpha1.CalendarEntry, zone string) *calendar.Calendar {
	items := make([]calendar.Item, len(entries))
	for i, e := range entries {
		items[i] = calendar.Item{Name: e.Name, Start: e.Start, End: e.End, Rule: e.Rule, TimeZone: zone, Running: asInt(e.Running), Size: asInt(e.Size)}
		if e.Demand != nil {
			factor := parseDecimal(*e.Demand)
			if math.IsNaN(factor) {
				p.reject(v1alpha1.ReasonInvalidCalendar, fmt.Sprintf("calendar[%d].demand", i), "%q is not a number from 0 to 1000: write one such as \"0.5\" or \"2\"", *e.Demand)
				return nil
			}
			items[i].Demand = &factor
		}
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return nil
	}
	out, err := calendar.Parse(items)
	if err != nil {
		field, problem, _ := strings.Cut(err.Error(), " ")
		p.reject(v1alpha1.ReasonInvalidCalendar, field, "%s", problem)
	}
	return out
}

func asInt(n *int32) *int {
	if n == nil {
		return nil
	}
	out := int(*n)
	return &out
}
