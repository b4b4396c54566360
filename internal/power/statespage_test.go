package power

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

var update = flag.Bool("update", false, "write docs/power-states.md anew")

const statesPage = "../../docs/power-states.md"

// The page is what exploring the decider has shown.
func TestThePageOfStatesIsThatOfTheDecider(t *testing.T) {
	got := explore().page()
	if *update {
		if err := os.WriteFile(statesPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/power-states.md is stale: run make generate\n%s", diff)
	}
}

const pageHead = `# Power states

A ClusterDeployment reports its power in ` + "`status.powerState`" + ` and in the conditions
Hibernating and Ready. [Conditions](conditions.md#clusterdeployment-power) explains each reason;
this page lists every combination, and what causes each transition.

Do not edit this page: ` + "`make generate`" + ` writes it. A program takes a small cluster
through everything that can happen to it and records what the decider, ` + "`internal/power`" + `,
reports. A test fails when this page differs.
`

func (a *atlas) page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("\n## Normal operation\n\nThe reasons of condition Hibernating.\n\n")
	well := a.arrows(a.isSound, reasonOf, sound)
	diagram(&b, well)
	steps := a.arrows(a.isSound, wordOf, func(e event) bool { return e.kind == course })
	for _, group := range a.groups() {
		if inner := within(group, steps); len(inner) > 0 {
			fmt.Fprintf(&b, "\n### %s, step by step\n\nThe values of `status.powerState` while condition Hibernating has reason %s.\n\n", group, group)
			diagram(&b, inner)
		}
	}
	b.WriteString("\n## When something goes wrong\n\nOne failure at a time. The diagram shows the reasons of condition Hibernating.\n\n")
	diagram(&b, a.wrong(reasonOf).without(well))
	b.WriteString("\nA cluster that was up keeps reason Running when its power is not the cause. The values of\n`status.powerState`:\n\n")
	diagram(&b, slices.DeleteFunc(a.wrong(wordOf), func(x arrow) bool { return x.leaves != hivev1.ReasonRunning || x.enters != hivev1.ReasonRunning }))
	b.WriteString("\n" + elsewhere + "\n## Every state\n\n")
	a.table(&b)
	return b.String()
}

const elsewhere = `From every state, a pause (annotation ` + "`" + hivev1.AnnotationPowerPause + "`" + `) leads
to PowerStatePaused; the end of the pause leads to the state that is observed then. Deletion
leads to ClusterDeploymentDeleted. From Unsupported, an upgrade leads to the state that is
observed then. A fake cluster is either Running or Hibernating, and changes from one to the
other immediately.
`

// arrow is what leads from one state to another, by one of its causes.
type arrow struct {
	from, to string
	// leaves and enters are the reasons of Hibernating.
	leaves, enters string
	cause          string
}

type arrows []arrow

func reasonOf(t told) string { return t.hibernating.Reason }
func wordOf(t told) string   { return t.word }

func (a *atlas) isSound(i int) bool { return i < a.sound }

// isHurt are the spots to which one failure has led, and whatever else came after.
func (a *atlas) isHurt() func(int) bool {
	hurt := map[int]bool{}
	var todo []int
	visit := func(from int, counts func(event) bool) {
		for _, s := range a.steps[from] {
			if counts(s.event) && !a.isSound(s.to) && !hurt[s.to] {
				hurt[s.to] = true
				todo = append(todo, s.to)
			}
		}
	}
	for i := range a.sound {
		visit(i, func(e event) bool { return e.kind == failure })
	}
	for len(todo) > 0 {
		i := todo[0]
		todo = todo[1:]
		visit(i, sound)
	}
	return func(i int) bool { return hurt[i] }
}

// arrows are the steps that count between states of real clusters, as seen by
// name: in the order in which they are found, each once.
func (a *atlas) arrows(begins func(int) bool, name func(told) string, counts func(event) bool) arrows {
	var out arrows
	for i, at := range a.spots {
		if !begins(i) || at.fake || at.told.nobodyLooks() {
			continue
		}
		for _, s := range a.steps[i] {
			// What happens before all is still shows the same as what happens after.
			if s.event.cause != "" && !a.still(i) {
				continue
			}
			to := a.spots[s.to].told
			x := arrow{name(at.told), name(to), reasonOf(at.told), reasonOf(to), a.cause(i, s)}
			if counts(s.event) && x.from != x.to && !to.nobodyLooks() && x.cause != upgrade && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// wrong are the arrows of what goes wrong, and of what comes of it.
func (a *atlas) wrong(name func(told) string) arrows {
	return slices.Concat(
		a.arrows(a.isSound, name, func(e event) bool { return e.kind == failure }),
		a.arrows(a.isHurt(), name, func(e event) bool { return e.kind == relief || e.kind == course }),
	)
}

func (a arrows) without(others arrows) arrows {
	return slices.DeleteFunc(a, func(x arrow) bool { return slices.Contains(others, x) })
}

// within are the arrows from states of a group, if it has steps at all.
func within(group string, all arrows) arrows {
	var out arrows
	stepwise := false
	for _, x := range all {
		if x.leaves == group {
			out = append(out, x)
			stepwise = stepwise || x.enters == group
		}
	}
	if !stepwise || group == hivev1.ReasonUnsupported {
		return nil
	}
	return out
}

// cause is the event of a step. Of another pass it is what the pass before did,
// or the platform's refusal of what this one would do.
func (a *atlas) cause(from int, s step) string {
	to := a.spots[s.to]
	switch did := a.spots[from].did; {
	case to.trouble == refusing && to.did != NoAction && s.event.kind == course:
		return "the platform refuses requests"
	case s.event.cause != "":
		return s.event.cause
	case did == Start:
		return "hotspare starts its machines"
	case did == Stop:
		return "hotspare stops its machines"
	default:
		return heard // the record that the pass before opened waits for news of the nodes
	}
}

// nobodyLooks reports whether this is the reported state of a paused or deleted cluster.
func (t told) nobodyLooks() bool { return t.word == hivev1.StatusUnknown }

// groups are the reasons of Hibernating, in the order of discovery.
func (a *atlas) groups() []string {
	var out []string
	for _, s := range a.states {
		if r := s.Hibernating.Reason; !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// diagram draws all arrows between two states as one.
func diagram(b *strings.Builder, all arrows) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	type ends struct{ from, to string }
	causes := map[ends][]string{}
	var order []ends
	for _, x := range all {
		e := ends{x.from, x.to}
		if e.from == hivev1.ReasonInitialized {
			e.from = "[*]"
		}
		if causes[e] == nil {
			order = append(order, e)
		}
		if !slices.Contains(causes[e], x.cause) {
			causes[e] = append(causes[e], x.cause)
		}
	}
	for _, e := range order {
		slices.Sort(causes[e])
		fmt.Fprintf(b, "    %s --> %s: %s\n", e.from, e.to, strings.Join(causes[e], "<br/>"))
	}
	b.WriteString("```\n")
}

// meanings are what a state is to users, by the reason of Hibernating and, where
// that is not enough, the word.
var meanings = map[string]string{
	hivev1.ReasonInitialized:                        "it is being installed",
	hivev1.ReasonResuming:                           "it is resuming",
	hivev1.ReasonRunning:                            "it was up, and does not meet a requirement now",
	hivev1.ReasonRunning + hivev1.StatusRunning:     "it can be used",
	hivev1.ReasonUnsupported:                        "it cannot hibernate, and does not meet a requirement now",
	hivev1.ReasonUnsupported + hivev1.StatusRunning: "it can be used, and cannot hibernate",
	hivev1.ReasonStopping:                           "it is stopping",
	hivev1.ReasonHibernating:                        "every machine sleeps, at some [depth](concepts.md#depths-of-sleep)",
	hivev1.ReasonFailedToStart:                      "it does not start as expected; hotspare keeps trying",
	hivev1.ReasonFailedToStop:                       "it does not stop as expected; hotspare keeps trying",
	hivev1.ReasonPowerPaused:                        "hotspare does not check its machines until the pause ends",
	hivev1.ReasonClusterGoing:                       "hotspare no longer checks it",
}

func (a *atlas) table(b *strings.Builder) {
	b.WriteString("| powerState | Hibernating | Ready | meaning | example message |\n|---|---|---|---|---|\n")
	for _, group := range a.groups() {
		for _, s := range a.states {
			if s.Hibernating.Reason == group {
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cmp.Or(s.PowerState, "(empty)"), brieflyOf(s.Hibernating), brieflyOf(s.Ready),
					cmp.Or(meanings[group+s.PowerState], meanings[group], "see the message"), s.says())
			}
		}
	}
}

// says is the message of the condition that the word is from.
func (s State) says() string {
	if s.PowerState == s.Ready.Reason {
		return s.Ready.Message
	}
	return s.Hibernating.Message
}

func brieflyOf(v condition.Value) string {
	if v.Status == corev1.ConditionUnknown {
		return "Unknown, " + v.Reason
	}
	return string(v.Status) + ", " + v.Reason
}
