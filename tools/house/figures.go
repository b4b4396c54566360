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

// figures measures the tree.
func (t *tree) figures() []figure {
	var out []figure
	for _, part := range []func() []figure{t.size, t.names, t.shape, t.words, t.errors, t.habits} {
		out = append(out, part()...)
	}
	return out
}

func (t *tree) size() []figure {
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
		{name: "lines of a file: median / p90 / most", value: spread(lines)},
		{name: "lines of comments per line of code", value: ratio(comments, code)},
		{name: "lines of tests per line of code", value: ratio(tests, code)},
		{name: "packages without a comment", value: fmt.Sprint(len(without)), examples: without},
	}
}

// names measures the names of functions. A name has as many words as it has parts in
// MixedCaps. It is shared when functions in five packages or more have it.
func (t *tree) names() []figure {
	functions := t.functions()
	var lengths []int
	one := 0
	packages := map[string]map[string]bool{}
	for _, f := range functions {
		name := f.decl.Name.Name
		lengths = append(lengths, len(name))
		if len(wordsOf(name)) == 1 {
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
			if len(wordsOf(name)) == 1 && !yield(name) {
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
		{name: "characters of a function's name, median", value: fmt.Sprint(at(lengths, 50))},
		{name: "functions with a name of one word", value: share(one, len(functions)), examples: names},
		{name: "functions whose name 5 packages or more have", value: share(shared, len(functions))},
	}
}

// wordsOf splits a name in MixedCaps: "patchHTTPStatus" is patch, HTTP, Status.
func wordsOf(name string) []string {
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

func (t *tree) shape() []figure {
	functions := t.functions()
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
	longest := t.list(functions, func(f function) int { return f.lines })
	slices.SortFunc(functions, func(a, b function) int { return cmp.Compare(b.complexity, a.complexity) })
	return []figure{
		{name: "lines of a function: median / p90 / most", value: spread(lines), examples: longest},
		{name: "functions of more than 40 lines", value: share(long, len(functions))},
		{name: "complexity: median / p90 / most", value: spread(complexity), examples: t.list(functions, func(f function) int { return f.complexity })},
		{name: "functions with a complexity above 10", value: share(complicated, len(functions))},
		{name: "functions with more than 5 parameters", value: share(parameters, len(functions))},
	}
}

func (t *tree) list(functions []function, of func(function) int) []string {
	var out []string
	for _, f := range functions {
		out = append(out, fmt.Sprintf("%4d  %s  %s", of(f), t.position(f.file, f.decl), f.decl.Name.Name))
	}
	return out
}

var (
	telling = regexp.MustCompile(`(?i)^(tell|tells|told|telling)$`)
	// headless matches a sentence that begins with a clause in place of a subject.
	headless = regexp.MustCompile(`^(What|Who|Whoever|Whatever|Of|That) [a-z]`)
	sentence = regexp.MustCompile(`[.:!?]\s+|\n\s*\n`)
)

// words measures the sentences of comments, but for lines that are for programs.
func (t *tree) words() []figure {
	var words, sentences int
	var told, odd []string
	for _, f := range t.files {
		for _, group := range f.syntax.Comments {
			for _, s := range sentencesOf(group) {
				sentences++
				if headless.MatchString(s) {
					odd = append(odd, t.position(f, group)+"  "+s)
				}
				for _, w := range strings.Fields(s) {
					words++
					if telling.MatchString(strings.Trim(w, ".,;:()\"'`")) {
						told = append(told, t.position(f, group)+"  "+s)
					}
				}
			}
		}
	}
	return []figure{
		{name: `"tell", "tells", "told" per 1,000 words of comments`, value: perThousand(len(told), words), examples: told},
		{name: `sentences of comments without a subject ("What…", "Of…")`, value: share(len(odd), sentences), examples: odd},
	}
}

// sentencesOf are the sentences of a comment, with single spaces.
func sentencesOf(group *ast.CommentGroup) []string {
	var out []string
	for _, s := range sentence.Split(plainText(group), -1) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// plainText is the text of a comment without lines that are for programs.
func plainText(group *ast.CommentGroup) string {
	var out []string
	for _, line := range strings.Split(group.Text(), "\n") {
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "\t") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// share is a part of a whole in percent.
func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %% (%d of %d)", 100*float64(n)/float64(of), n, of)
}

func ratio(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func perThousand(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%d)", 1000*float64(n)/float64(of), n)
}

// spread is the median, the ninetieth percentile and the greatest of values.
func spread(values []int) string {
	if len(values) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%d / %d / %d", at(sorted, 50), at(sorted, 90), sorted[len(sorted)-1])
}

// at is the value below which percent of the sorted values are.
func at(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
