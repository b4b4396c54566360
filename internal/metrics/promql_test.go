package metrics_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// vector is what is known about the value of a PromQL expression: its labels, and either the type
// of the metric that it is a range of or that it is a number.
type vector struct {
	labels map[string]bool
	ranges string
	number bool
}

// promql evaluates the labels of an expression and reports errors. It supports the subset of the
// language that hotspare's rules and dashboards use, and rejects the rest.
type promql struct {
	// kinds and labels have an entry for each existing series.
	kinds  map[string]string
	labels map[string]map[string]bool
	// values has the known values of a metric's label, by "metric label".
	values map[string]map[string]bool

	rest []string
	used int
}

var promToken = regexp.MustCompile(`\$?[a-zA-Z_][a-zA-Z0-9_:]*|[0-9.]+[a-z]*|"[^"]*"|[=!<>]=|=~|!~|\[[^\]]+\]|\S`)

// functions keep the labels of their vector; those with a type take a range of that type.
var functions = map[string]string{
	"rate": "counter", "increase": "counter", "avg_over_time": "gauge", "sum_over_time": "gauge", "max_over_time": "gauge",
	"clamp_min": "", "clamp_max": "",
}

// check returns the labels of the expression's value.
func (p *promql) check(expr string) (labels map[string]bool, err error) {
	p.rest, p.used = promToken.FindAllString(expr, -1), 0
	defer func() {
		if r := recover(); r != nil {
			fault, ours := r.(complaint)
			if !ours {
				panic(r)
			}
			err = fmt.Errorf("%s in %q", string(fault), expr)
		}
	}()
	v := p.instant()
	if len(p.rest) > 0 {
		fail("%q is not understood", p.rest[0])
	}
	if p.used == 0 {
		fail("there is no metric")
	}
	return v.labels, nil
}

// complaint is the value with which the parser panics; check recovers it.
type complaint string

func fail(format string, args ...any) { panic(complaint(fmt.Sprintf(format, args...))) }

func (p *promql) peek() string {
	if len(p.rest) == 0 {
		return ""
	}
	return p.rest[0]
}

func (p *promql) next() string {
	t := p.peek()
	if t == "" {
		fail("the end comes too early")
	}
	p.rest = p.rest[1:]
	return t
}

func (p *promql) want(token string) {
	if t := p.next(); t != token {
		fail("%q stands where %q should", t, token)
	}
}

var operators = []string{"+", "-", "*", "/", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"}

// expression evaluates operators from left to right: precedence does not matter for labels.
func (p *promql) expression() vector {
	left := p.operand()
	if left.ranges != "" {
		return left
	}
	for slices.Contains(operators, p.peek()) {
		op := p.next()
		var on []string
		if p.peek() == "on" {
			p.next()
			on = p.names()
		}
		right := p.operand()
		if right.ranges != "" {
			fail("a range stands right of %s", op)
		}
		left = combine(op, left, right, on)
	}
	return left
}

// instant parses an expression that is not a range.
func (p *promql) instant() vector {
	v := p.expression()
	if v.ranges != "" {
		fail("a range of %s stands where values should", v.ranges)
	}
	return v
}

// combine rejects operands that never match: PromQL then returns neither a result nor an error.
func combine(op string, left, right vector, on []string) vector {
	switch {
	case left.number:
		return vector{labels: right.labels, number: right.number}
	case right.number:
		return vector{labels: left.labels}
	case on == nil && !maps.Equal(left.labels, right.labels):
		fail("the sides of %s have different labels, %v and %v, and never match", op, sorted(left.labels), sorted(right.labels))
	}
	for _, l := range on {
		if !left.labels[l] || !right.labels[l] {
			fail("label %s is not on both sides of %s", l, op)
		}
	}
	return vector{labels: left.labels}
}

func sorted(labels map[string]bool) []string { return slices.Sorted(maps.Keys(labels)) }

// names parses (a, b).
func (p *promql) names() []string {
	out := []string{}
	p.want("(")
	for p.peek() != ")" {
		out = append(out, p.next())
		if p.peek() == "," {
			p.next()
		}
	}
	p.next()
	return out
}

func (p *promql) operand() vector {
	t := p.next()
	_, keeps := functions[t]
	switch {
	case t == "(":
		v := p.instant()
		p.want(")")
		return p.subquery(v)
	case t[0] >= '0' && t[0] <= '9':
		return vector{number: true}
	case slices.Contains([]string{"sum", "max", "min", "avg", "count"}, t):
		return p.aggregate(t)
	case t == "histogram_quantile", t == "absent", keeps:
		return p.call(t)
	default:
		return p.selector(t)
	}
}

func (p *promql) aggregate(op string) vector {
	out := vector{labels: map[string]bool{}}
	var by []string
	if p.peek() == "by" {
		p.next()
		by = p.names()
	}
	p.want("(")
	in := p.instant()
	p.want(")")
	for _, l := range by {
		if !in.labels[l] {
			fail("%s by %s, which is not among the labels %v", op, l, sorted(in.labels))
		}
		out.labels[l] = true
	}
	return p.subquery(out)
}

// subquery treats the values of an expression over time as a gauge.
func (p *promql) subquery(v vector) vector {
	if strings.HasPrefix(p.peek(), "[") {
		if !strings.Contains(p.next(), ":") {
			fail("the range of an expression needs a step")
		}
		v.ranges = "gauge"
	}
	return v
}

func (p *promql) call(name string) vector {
	p.want("(")
	in := p.expression()
	for p.peek() == "," {
		p.next()
		if more := p.expression(); in.number {
			in = more
		}
	}
	p.want(")")
	if kind := functions[name]; kind != in.ranges {
		fail("%s takes a range of %q, and not of %q", name, kind, in.ranges)
	}
	out := maps.Clone(in.labels)
	switch name {
	case "absent":
		clear(out)
	case "histogram_quantile":
		if !out["le"] {
			fail("histogram_quantile needs label le, and there are %v", sorted(out))
		}
		delete(out, "le")
	}
	return vector{labels: out}
}

func (p *promql) selector(name string) vector {
	kind, exists := p.kinds[name]
	if !exists {
		fail("there is no metric or function %s", name)
	}
	p.used++
	if p.peek() == "{" {
		p.matchers(name)
	}
	if strings.HasPrefix(p.peek(), "[") {
		p.next()
		return vector{labels: p.labels[name], ranges: kind}
	}
	if kind == "counter" {
		fail("%s is a counter: its rate or increase tells something, and its value nothing", name)
	}
	return vector{labels: p.labels[name]}
}

func (p *promql) matchers(name string) {
	for p.next(); p.peek() != "}"; {
		label, op, value := p.next(), p.next(), strings.Trim(p.next(), `"`)
		if !p.labels[name][label] {
			fail("%s has no label %s, but %v", name, label, sorted(p.labels[name]))
		}
		if p.peek() == "," {
			p.next()
		}
		known := p.values[name+" "+label]
		if known == nil || strings.Contains(value, "$") {
			continue
		}
		parts := []string{value}
		if strings.HasSuffix(op, "~") {
			parts = strings.Split(value, "|")
		}
		for _, v := range parts {
			if !known[v] {
				fail("label %s of %s is never %q, but one of %v", label, name, v, sorted(known))
			}
		}
	}
	p.next()
}
