package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// figure is one measurement.
type figure struct {
	name, value string
	// examples are what makes the figure, worst first.
	examples []string
}

// measureAll measures the tree.
func (t *tree) measureAll() []figure {
	var out []figure
	for _, part := range []func() []figure{t.measureSize, t.measureNames, t.measureShape, t.measureWords, t.measureErrors, t.measureHabits} {
		out = append(out, part()...)
	}
	return out
}

func (t *tree) measureSize() []figure {
	folders := map[string]bool{}
	documented := map[string]bool{}
	var code, comments, tests int
	var lines []int
	for _, f := range t.files {
		folders[f.folder] = true
		documented[f.folder] = documented[f.folder] || f.syntax.Doc != nil
		code, comments = code+f.code, comments+f.comments
		lines = append(lines, f.lines)
	}
	for _, f := range t.tests {
		tests += f.code
	}
	var without []string
	for folder := range folders {
		if !documented[folder] {
			without = append(without, folder)
		}
	}
	slices.Sort(without)
	return []figure{
		{name: "packages / files / lines of code", value: fmt.Sprintf("%d / %d / %d", len(folders), len(t.files), code)},
		{name: "lines of a file: median / p90 / most", value: formatSpread(lines)},
		{name: "lines of comments per line of code", value: formatRatio(comments, code)},
		{name: "lines of tests per line of code", value: formatRatio(tests, code)},
		{name: "packages without a comment", value: fmt.Sprint(len(without)), examples: without},
	}
}

// measureNames measures the names of functions. A name has as many words as it has parts in
// MixedCaps. It is shared when functions in five packages or more have it.
func (t *tree) measureNames() []figure {
	functions := t.listFunctions()
	var lengths []int
	one := 0
	packages := map[string]map[string]bool{}
	for _, f := range functions {
		name := f.decl.Name.Name
		lengths = append(lengths, len(name))
		if len(splitWords(name)) == 1 {
			one++
		}
		if packages[name] == nil {
			packages[name] = map[string]bool{}
		}
		packages[name][f.file.folder] = true
	}
	shared := 0
	for _, f := range functions {
		if len(packages[f.decl.Name.Name]) >= 5 {
			shared++
		}
	}
	slices.Sort(lengths)
	names := slices.Collect(func(yield func(string) bool) {
		for name := range packages {
			if len(splitWords(name)) == 1 && !yield(name) {
				return
			}
		}
	})
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(packages[b]), len(packages[a])), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s: %d packages", name, len(packages[name]))
	}
	return []figure{
		{name: "functions", value: fmt.Sprint(len(functions))},
		{name: "characters of a function's name, median", value: fmt.Sprint(percentileOf(lengths, 50))},
		{name: "functions with a name of one word", value: formatShare(one, len(functions)), examples: names},
		{name: "functions whose name 5 packages or more have", value: formatShare(shared, len(functions))},
	}
}

// splitWords splits a name in MixedCaps: "patchHTTPStatus" is patch, HTTP, Status.
func splitWords(name string) []string {
	var out []string
	runes := []rune(name)
	begin := 0
	for i := 1; i < len(runes); i++ {
		up := unicode.IsUpper(runes[i])
		after := up && !unicode.IsUpper(runes[i-1])
		before := up && i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if after || before || runes[i] == '_' {
			out = append(out, string(runes[begin:i]))
			begin = i
		}
	}
	return append(out, string(runes[begin:]))
}

func (t *tree) measureShape() []figure {
	functions := t.listFunctions()
	var lines, complexity []int
	long, complicated, parameters := 0, 0, 0
	for _, f := range functions {
		lines, complexity = append(lines, f.lines), append(complexity, f.complexity)
		if f.lines > 40 {
			long++
		}
		if f.complexity > 10 {
			complicated++
		}
		if f.decl.Type.Params.NumFields() > 5 {
			parameters++
		}
	}
	slices.SortFunc(functions, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	longest := t.formatFunctions(functions, func(f function) int { return f.lines })
	slices.SortFunc(functions, func(a, b function) int { return cmp.Compare(b.complexity, a.complexity) })
	return []figure{
		{name: "lines of a function: median / p90 / most", value: formatSpread(lines), examples: longest},
		{name: "functions of more than 40 lines", value: formatShare(long, len(functions))},
		{name: "complexity: median / p90 / most", value: formatSpread(complexity), examples: t.formatFunctions(functions, func(f function) int { return f.complexity })},
		{name: "functions with a complexity above 10", value: formatShare(complicated, len(functions))},
		{name: "functions with more than 5 parameters", value: formatShare(parameters, len(functions))},
	}
}

func (t *tree) formatFunctions(functions []function, of func(function) int) []string {
	var out []string
	for _, f := range functions {
		out = append(out, fmt.Sprintf("%4d  %s  %s", of(f), t.formatPosition(f.file, f.decl), f.decl.Name.Name))
	}
	return out
}

var (
	tellPattern = regexp.MustCompile(`(?i)^(tell|tells|told|telling)$`)
	// headless matches a sentence that begins with a clause in place of a subject.
	headless = regexp.MustCompile(`^(What|Who|Whoever|Whatever|Of|That) [a-z]`)
	sentence = regexp.MustCompile(`[.:!?]\s+|\n\s*\n`)
)

// measureWords measures the sentences of comments, but for lines that are for programs.
func (t *tree) measureWords() []figure {
	var words, sentences int
	var told, odd []string
	for _, f := range t.files {
		for _, group := range f.syntax.Comments {
			for _, s := range splitSentences(group) {
				sentences++
				if headless.MatchString(s) {
					odd = append(odd, t.formatPosition(f, group)+"  "+s)
				}
				for _, w := range strings.Fields(s) {
					words++
					if tellPattern.MatchString(strings.Trim(w, ".,;:()\"'`")) {
						told = append(told, t.formatPosition(f, group)+"  "+s)
					}
				}
			}
		}
	}
	return []figure{
		{name: `"tell", "tells", "told" per 1,000 words of comments`, value: formatPerThousand(len(told), words), examples: told},
		{name: `sentences of comments without a subject ("What…", "Of…")`, value: formatShare(len(odd), sentences), examples: odd},
	}
}

// splitSentences are the sentences of a comment, with single spaces.
func splitSentences(group *ast.CommentGroup) []string {
	var out []string
	for _, s := range sentence.Split(plainCommentText(group), -1) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// plainCommentText is the text of a comment without lines that are for programs.
func plainCommentText(group *ast.CommentGroup) string {
	var out []string
	for _, line := range strings.Split(group.Text(), "\n") {
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "\t") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// formatShare is a part of a whole in percent.
func formatShare(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %% (%d of %d)", 100*float64(n)/float64(of), n, of)
}

func formatRatio(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func formatPerThousand(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%d)", 1000*float64(n)/float64(of), n)
}

// formatSpread is the median, the ninetieth percentile and the greatest of values.
func formatSpread(values []int) string {
	if len(values) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%d / %d / %d", percentileOf(sorted, 50), percentileOf(sorted, 90), sorted[len(sorted)-1])
}

// percentileOf is the value below which percent of the sorted values are.
func percentileOf(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
