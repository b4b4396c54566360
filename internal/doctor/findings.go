package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Level is how serious a finding is.
type Level string

// Levels of findings.
const (
	// OK is the level of a need that is met.
	OK Level = "OK"
	// Note is the level of a limit, or of a fact that could not be read. It stops nothing.
	Note Level = "Note"
	// Problem is the level of a need that is not met.
	Problem Level = "Problem"
)

// Need is the part of hotspare that needs what a finding is about.
type Need string

// Parts of hotspare. Containers need what the hub needs, too.
const (
	// Hub is the hub with its local clusters, whose pods may be simulated.
	Hub Need = "Hub"
	// Containers are real pods on local clusters.
	Containers Need = "Containers"
)

// Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"`
	Needed  Need   `json:"needed"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Remedy is what a person can do. Each problem has one.
	Remedy *remedy.Remedy `json:"remedy,omitempty"`
}

// Findings returns the result of each check that applies to a machine: first those of the hub, then
// those of real pods. The order of checks is fixed.
func Findings(f Facts) []Finding {
	var out []Finding
	for _, r := range f.runChecks() {
		out = append(out, r.Finding)
	}
	return out
}

// HasProblem reports whether a finding is a problem for a part of hotspare.
func HasProblem(all []Finding, part Need) bool {
	return slices.ContainsFunc(all, func(f Finding) bool {
		return f.Level == Problem && (f.Needed == part || f.Needed == Hub)
	})
}

// ContainersObstacle returns one sentence that says why real pods cannot run on a machine, and what
// to do; "" if they can. It contains no number that changes from minute to minute.
func ContainersObstacle(f Facts) string {
	var missing, causes, solutions []string
	installation := ""
	for _, r := range f.runChecks() {
		switch {
		case r.Level != Problem:
		case len(r.missing) > 0:
			missing, installation = append(missing, r.missing...), r.solution // one for all that is missing
		default:
			causes = append(causes, r.cause)
			if !slices.Contains(solutions, r.solution) {
				solutions = append(solutions, r.solution)
			}
		}
	}
	if len(missing) > 0 {
		causes = append([]string{describeMissing(missing)}, causes...)
		solutions = append([]string{installation}, solutions...)
	}
	if len(causes) == 0 {
		return ""
	}
	return removeControls(joinClauses(causes) + ": " + joinClauses(solutions))
}

// result is a finding and, if it is a problem, its parts of the sentence of ContainersObstacle.
type result struct {
	Finding
	// missing are the names of what has to be installed.
	missing []string
	// cause is a clause, unless something is missing. solution is a clause with an imperative.
	cause, solution string
}

func (f Facts) runChecks() []result {
	all := append(f.checkHub(), f.checkContainers()...)
	for i := range all {
		all[i].Message = removeControls(all[i].Message)
		if do := all[i].Remedy; do != nil {
			do.Text = removeControls(do.Text)
		}
	}
	return all
}

func newResult(check string, part Need, level Level, format string, args ...any) result {
	return result{Finding: Finding{Check: check, Needed: part, Level: level, Message: fmt.Sprintf(format, args...)}}
}

// withRemedy adds what a person can do, and the parts of the sentence about it. The cause is the
// message, unless the message contains numbers that change.
func (r result) withRemedy(do *remedy.Remedy, cause, solution string) result {
	r.Remedy, r.cause, r.solution = do, cause, solution
	return r
}

// describeMissing returns a clause, such as "containerd and runc are missing".
func describeMissing(names []string) string {
	verb := " are missing"
	if len(names) == 1 && !strings.HasPrefix(names[0], severalPlugins) {
		verb = " is missing"
	}
	return humanize.JoinWords(names) + verb
}

// joinClauses joins clauses: a; a, and b; a, b, and c.
func joinClauses(all []string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + ", and " + all[last]
}

// removeControls replaces control characters, which a program of the machine may have printed, by
// blanks: the text is for a terminal.
func removeControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
}
