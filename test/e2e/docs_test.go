package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hotspare.io/hotspare/test/pages"
)

var onlyPages = flag.String("docs.pages", "", "run the commands of pages that match this only")

// TestTheCommandsOfTheDocsRun types what the pages tell people to type, page by page and
// from top to bottom, on one hub for each group of pages, starting with the quickstart on a
// machine that has none.
//
// What a page takes for granted is made by testdata/docs/PAGE.sh, where "### HEADING"
// begins what is run before the first block below that heading. testdata/docs/notrun.txt
// lists the commands that are not run, with the reason. The YAML blocks of a page are
// there as files: PAGE-1.yaml and so on.
func TestTheCommandsOfTheDocsRun(t *testing.T) { //nolint:tparallel // it is, once it has announced its groups
	only, err := regexp.Compile(*onlyPages)
	if err != nil {
		t.Fatal(err)
	}
	spared := readSpared(t)
	var ran atomic.Int64
	groups := inGroups(t)
	for name, group := range groups {
		groups[name] = slices.DeleteFunc(group, func(p pages.Page) bool { return !only.MatchString(p.Name) })
	}
	maps.DeleteFunc(groups, func(_ string, group []pages.Page) bool { return len(group) == 0 })
	turns.announce(len(groups))
	arrived := 0
	t.Parallel()
	for name, group := range groups {
		t.Run(name, func(t *testing.T) {
			arrived++ // t.Run waits until here, and does not call this if flags exclude the group
			t.Parallel()
			turns.arrive(t, 1)
			d := newDesk(t)
			for _, p := range group {
				n, ok := d.typePage(t, p, spared)
				ran.Add(n)
				if !ok {
					return // what follows would only fail for it
				}
			}
		})
	}
	turns.announce(arrived - len(groups))
	t.Cleanup(func() {
		t.Logf("%d commands were run", ran.Load())
		if *onlyPages != "" || t.Failed() {
			return
		}
		spared.unused(t)
		if ran.Load() < 100 {
			t.Errorf("only %d commands were run: this test looks in the wrong place", ran.Load())
		}
	})
}

// typePage types the commands of a page, and returns how many, and whether all went well.
func (d *desk) typePage(t *testing.T, p pages.Page, spared *spared) (ran int64, ok bool) {
	t.Helper()
	blocks := slices.DeleteFunc(slices.Clone(p.Blocks), func(b pages.Block) bool { return !typed(b) })
	if len(blocks) == 0 {
		return 0, true
	}
	d.layOut(t, p)
	before := readBefore(t, p.Name)
	for _, b := range blocks {
		script := before[b.Heading]
		delete(before, b.Heading)
		var commands []pages.Line
		for _, l := range b.ListCommands() {
			if why := spared.why(b, l); why != "" {
				t.Logf("not run: %s: %s: %s", b.PositionOf(l), l.Text, why)
				continue
			}
			commands = append(commands, l)
		}
		if len(commands) == 0 {
			continue
		}
		if !d.typeBlock(t, b, script, commands) {
			return ran, false
		}
		ran += int64(len(commands))
	}
	for heading := range before {
		t.Errorf("testdata/docs/%s has something for the heading %q, below which nothing is run", scriptOf(p.Name), heading)
	}
	return ran, true
}

// first are the pages that are read first, in this order.
var first = []string{"README.md", "docs/quickstart.md", "docs/cli.md"}

// inGroups returns the pages in three groups: those that are read first, and two of the others.
// Each group has a hub of its own.
func inGroups(t *testing.T) map[string][]pages.Page {
	t.Helper()
	all, err := pages.ReadAll(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]pages.Page{"first": make([]pages.Page, len(first))}
	for i, p := range all {
		if at := slices.Index(first, p.Name); at >= 0 {
			out["first"][at] = p
			continue
		}
		group := "odd"
		if i%2 == 0 {
			group = "even"
		}
		out[group] = append(out[group], p)
	}
	return out
}

func typed(b pages.Block) bool { return b.Language == "sh" || b.Language == "console" }

// spared are commands that are not run.
type spared struct {
	rules []rule
	mu    sync.Mutex
	used  []bool
}

type rule struct {
	page, command *regexp.Regexp
	why           string
}

// readSpared reads testdata/docs/notrun.txt: a pattern of pages, a pattern of commands and
// a reason a line, each after two blanks or more.
func readSpared(t *testing.T) *spared {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "docs", "notrun.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &spared{}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := regexp.MustCompile(`  +`).Split(line, 3)
		if len(parts) != 3 {
			t.Fatalf("notrun.txt: %q is not a page, a command and a reason", line)
		}
		s.rules = append(s.rules, rule{regexp.MustCompile("^" + parts[0] + "$"), regexp.MustCompile("^" + parts[1]), parts[2]})
	}
	s.used = make([]bool, len(s.rules))
	return s
}

// why says why a command is not run; "" when it is.
func (s *spared) why(b pages.Block, l pages.Line) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rules {
		if r.page.MatchString(b.Page) && r.command.MatchString(l.Text) {
			s.used[i] = true
			return r.why
		}
	}
	return ""
}

func (s *spared) unused(t *testing.T) {
	for i, r := range s.rules {
		if !s.used[i] {
			t.Errorf("notrun.txt: no page has a command for %s", r.command)
		}
	}
}

// scriptOf names what is run before the commands of a page.
func scriptOf(page string) string {
	return strings.NewReplacer("/", "-", ".md", ".sh").Replace(page)
}

// readBefore reads what is run before the commands of a page, by heading.
func readBefore(t *testing.T, page string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "docs", scriptOf(page)))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for part := range strings.SplitSeq("\n"+string(raw), "\n### ") {
		heading, script, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(script) != "" {
			out[heading] = script
		}
	}
	return out
}

// desk is where a person types: a folder, and programs in the PATH.
type desk struct{ home, work string }

func newDesk(t *testing.T) *desk {
	t.Helper()
	root := t.TempDir()
	d := &desk{home: filepath.Join(root, "home"), work: filepath.Join(root, "work")}
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(d.work, "bin")
	for _, dir := range []string{d.home, bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		filepath.Join(bin, "hotspare"): binary, filepath.Join(bin, "kubectl-hotspare"): binary,
		filepath.Join(d.work, "docs"): filepath.Join(top, "docs"), filepath.Join(d.work, "config"): filepath.Join(top, "internal", "fleet", "kasconfig", "testdata", "head"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	// The kubectl of somebody whose kubeconfig is the hub's.
	write(t, filepath.Join(bin, "kubectl"), "#!/bin/sh\nexec hotspare kubectl \"$@\"\n", 0o700)
	// A manager runs until it is stopped: who types it uses another terminal for the rest.
	write(t, filepath.Join(bin, "hotspare-manager"), fmt.Sprintf("#!/bin/sh\n%s \"$@\" >~/manager.log 2>&1 &\necho $! >~/manager.pid\n", quoted(managerBinary())), 0o700)
	shared, err := os.ReadFile(filepath.Join("testdata", "docs", "desk.sh"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.work, "desk.sh"), string(shared), 0o600)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if out, err := d.bash(ctx, "hotspare down").CombinedOutput(); err != nil {
			t.Errorf("stopping the hub: %v\n%s", err, out)
		}
		if left, err := processesOf(d.home); err != nil || len(left) > 0 {
			t.Errorf("processes are left: %v, %v", left, err)
		}
	})
	return d
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// layOut puts the YAML blocks of a page on the desk.
func (d *desk) layOut(t *testing.T, p pages.Page) {
	t.Helper()
	n := 0
	for _, b := range p.Blocks {
		if b.Language != "yaml" {
			continue
		}
		n++
		var text strings.Builder
		for _, l := range b.Lines[1:] {
			text.WriteString(l.Text + "\n")
		}
		write(t, filepath.Join(d.work, fmt.Sprintf("%s-%d.yaml", strings.TrimSuffix(path.Base(p.Name), ".md"), n)), text.String(), 0o600)
	}
}

// atMost bounds the commands of one block.
const atMost = 8 * time.Minute

// typeBlock types the commands of a block, after what is to be there before. It reports whether
// all went well.
func (d *desk) typeBlock(t *testing.T, b pages.Block, before string, commands []pages.Line) bool {
	t.Helper()
	var s strings.Builder
	s.WriteString("set -e -o pipefail\n. ./desk.sh\n")
	if !strings.Contains(commands[0].Text, "hotspare up") {
		s.WriteString("running\n")
	}
	s.WriteString(before + "\n")
	for _, l := range commands {
		fmt.Fprintf(&s, "echo %s\n%s\n", quoted(fmt.Sprintf("[%s] $ %s", b.PositionOf(l), l.Text)), l.Text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	began := time.Now()
	out, err := d.bash(ctx, s.String()).CombinedOutput()
	if err != nil {
		t.Errorf("%s, below %q: %v\n%s", b.PositionOf(b.Lines[0]), b.Heading, err, out)
		return false
	}
	t.Logf("ran in %.1f s:", time.Since(began).Seconds())
	for _, l := range commands {
		t.Logf("ran: %s: %s", b.PositionOf(l), l.Text)
	}
	return true
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// bash runs a script as a person in the desk's folder would.
func (d *desk) bash(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = d.work
	cmd.Env = environment("HOME="+d.home, "PATH="+filepath.Join(d.work, "bin")+":"+os.Getenv("PATH"), "EDITOR=true")
	cmd.WaitDelay = time.Second // what it left in the background holds its output
	return cmd
}
