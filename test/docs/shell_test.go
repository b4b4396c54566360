package docs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// programs splits a command line into the programs that it runs, each with its
// arguments. It knows quotes, comments, lists, pipes, substitutions, redirections
// and variables before a command: what the pages use.
func programs(text string) [][]string {
	var out [][]string
	var now []string
	end := func() {
		for len(now) > 0 && assigns(now[0]) {
			now = now[1:]
		}
		if len(now) > 0 {
			out = append(out, now)
		}
		now = nil
	}
	list := words(text)
	for i, w := range list {
		switch {
		case i > 0 && list[i-1] == ">": // where the output goes
		case slices.Contains([]string{"|", "&&", "||", ";", "$(", ")"}, w):
			end()
		case strings.HasPrefix(w, ">"), strings.HasPrefix(w, "2>"):
		default:
			now = append(now, w)
		}
	}
	end()
	return out
}

func assigns(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && strings.ToUpper(name) == name && !strings.HasPrefix(name, "-")
}

func words(text string) []string {
	var out []string
	var word strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			out = append(out, word.String())
		}
		word.Reset()
		begun = false
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		two := string(runes[i:min(i+2, len(runes))])
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			end()
		case r == '#' && !begun:
			return out
		case two == "&&" || two == "||" || two == "$(":
			end()
			out = append(out, two)
			i++
		case r == '|' || r == ';' || r == ')':
			end()
			out = append(out, string(r))
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return out
}

func TestPrograms(t *testing.T) {
	for text, want := range map[string][][]string{
		`hotspare status`:                               {{"hotspare", "status"}},
		`hotspare status   # how it is`:                 {{"hotspare", "status"}},
		`KUBECONFIG=a.b kubectl get nodes`:              {{"kubectl", "get", "nodes"}},
		`c=$(hotspare claim create dev -o name)`:        {{"c="}, {"hotspare", "claim", "create", "dev", "-o", "name"}},
		`hotspare up && hotspare status | grep x`:       {{"hotspare", "up"}, {"hotspare", "status"}, {"grep", "x"}},
		`hotspare claim run demo -- sh -c 'a b; c "d"'`: {{"hotspare", "claim", "run", "demo", "--", "sh", "-c", `a b; c "d"`}},
	} {
		if diff := cmp.Diff(want, programs(text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
