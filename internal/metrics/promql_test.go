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
func (q *promql) check(expr string) (labels map[string]bool, err error) {
	q.rest, q.used = promToken.FindAllString(expr, -1), 0
	defer func() {
		if r := recover(); r != nil {
			fault, ours := r.(complaint)
			if !ours {
				panic(r)
			}
			err = fmt.Errorf("%s in %q", string(fault), expr)
		}
	}()
	v := q.instant()
	if len(q.rest) > 0 {
		fail("%q is not understood", q.rest[0])
	}
	if q.used == 0 {
		fail("there is no metric")
	}
	return v.labels, nil
}

// complaint is the value with which the parser panics; check recovers it.
type complaint string

func fail(format string, args ...any) { panic(complaint(fmt.Sprintf(format, args...))) }

func (q *promql) peek() string {
	if len(q.rest) == 0 {
		return ""
	}
	return q.rest[0]
}

func (q *promql) next() string {
	t := q.peek()
	if t == "" {
		fail("the end comes too early")
	}
	q.rest = q.rest[1:]
	return t
}

func (q *promql) want(token string) {
	if t := q.next(); t != token {
		fail("%q stands where %q should", t, token)
	}
}

var operators = []string{"+", "-", "*", "/", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"}

// expression evaluates operators from left to right: precedence does not matter for labels.
func (q *promql) expression() vector {
	left := q.operand()
	if left.ranges != "" {
		return left
	}
	for slices.Contains(operators, q.peek()) {
		op := q.next()
		var on []string
		if q.peek() == "on" {
			q.next()
			on = q.names()
		}
		right := q.operand()
		if right.ranges != "" {
			fail("a range stands right of %s", op)
		}
		left = combine(op, left, right, on)
	}
	return left
}

// instant parses an expression that is not a range.
func (q *promql) instant() vector {
	v := q.expression()
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
func (q *promql) names() []string {
	out := []string{}
	q.want("(")
	for q.peek() != ")" {
		out = append(out, q.next())
		if q.peek() == "," {
			q.next()
		}
	}
	q.next()
	return out
}

func (q *promql) operand() vector {
	t := q.next()
	_, keeps := functions[t]
	switch {
	case t == "(":
		v := q.instant()
		q.want(")")
		return q.subquery(v)
	case t[0] >= '0' && t[0] <= '9':
		return vector{number: true}
	case slices.Contains([]string{"sum", "max", "min", "avg", "count"}, t):
		return q.aggregate(t)
	case t == "histogram_quantile", t == "absent", keeps:
		return q.call(t)
	default:
		return q.selector(t)
	}
}

func (q *promql) aggregate(op string) vector {
	out := vector{labels: map[string]bool{}}
	var by []string
	if q.peek() == "by" {
		q.next()
		by = q.names()
	}
	q.want("(")
	in := q.instant()
	q.want(")")
	for _, l := range by {
		if !in.labels[l] {
			fail("%s by %s, which is not among the labels %v", op, l, sorted(in.labels))
		}
		out.labels[l] = true
	}
	return q.subquery(out)
}

// subquery treats the values of an expression over time as a gauge.
func (q *promql) subquery(v vector) vector {
	if strings.HasPrefix(q.peek(), "[") {
		if !strings.Contains(q.next(), ":") {
			fail("the range of an expression needs a step")
		}
		v.ranges = "gauge"
	}
	return v
}

func (q *promql) call(name string) vector {
	q.want("(")
	in := q.expression()
	for q.peek() == "," {
		q.next()
		if more := q.expression(); in.number {
			in = more
		}
	}
	q.want(")")
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

func (q *promql) selector(name string) vector {
	kind, exists := q.kinds[name]
	if !exists {
		fail("there is no metric or function %s", name)
	}
	q.used++
	if q.peek() == "{" {
		q.matchers(name)
	}
	if strings.HasPrefix(q.peek(), "[") {
		q.next()
		return vector{labels: q.labels[name], ranges: kind}
	}
	if kind == "counter" {
		fail("%s is a counter: its rate or increase tells something, and its value nothing", name)
	}
	return vector{labels: q.labels[name]}
}

func (q *promql) matchers(name string) {
	for q.next(); q.peek() != "}"; {
		label, op, value := q.next(), q.next(), strings.Trim(q.next(), `"`)
		if !q.labels[name][label] {
			fail("%s has no label %s, but %v", name, label, sorted(q.labels[name]))
		}
		if q.peek() == "," {
			q.next()
		}
		known := q.values[name+" "+label]
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
	q.next()
}
