package simulate

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/cli/base"
)

var update = flag.Bool("update", false, "write testdata anew")

// call runs the command and returns what it prints.
func call(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	a := base.NewApp(base.Options{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &notes, Clock: testclock.NewFakeClock(time.Now())})
	cmd := NewCommand(a)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.PersistentFlags().VarP(&a.Flags.Output, "output", "o", "")
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

const trace = "testdata/merges-ci-tools.csv"

func TestTheTableOfASmallTrace(t *testing.T) {
	stdout, stderr, err := call(t, "", "--trace", trace, "--prices", "running=1,hibernating=0.1", "--policy", "auto", "--policy", "static:2",
		"--policy", "static:3", "--policy", "testdata/policy.yaml", "--policy", "schedule:testdata/schedule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "merges-ci-tools.txt")
	got := stdout + stderr
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the table differs; run with -update if that is intended:\n%s", diff)
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	args := []string{
		"--trace", trace, "--policy", "static:2", "--resume", "5m,9m", "--install", "40m,60m", "--failed-resumes", "5", "--failed-installs", "5",
		"--from", "2026-06-01T00:00:00Z", "--max-size", "9", "--max-concurrent", "3", "--destroy", "5m", "--no-hindsight", "-o", "json", "--seed",
	}
	first, _, err := call(t, "", append(args, "7")...)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := call(t, "", append(args, "7")...)
	if err != nil || first != again {
		t.Errorf("the same seed gives another result: %v", err)
	}
	if other, _, err := call(t, "", append(args, "8")...); err != nil || first == other {
		t.Errorf("the seed has no effect: %v", err)
	}
}

func TestBadInputIsExplained(t *testing.T) {
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policy := func(text string) []string { return []string{"--trace", trace, "--policy", file("p.yaml", text)} }
	schedule := func(text string) []string {
		return []string{"--trace", trace, "--policy", "schedule:" + file("s.yaml", text)}
	}
	csv := func(text string) []string { return []string{"--trace", file("t.csv", text)} }
	with := func(args ...string) []string { return append([]string{"--trace", trace}, args...) }
	for want, args := range map[string][]string{
		"specify the recorded claims with --trace": {},
		"no such file": {"--trace", "nope.csv"},
		`t.csv:3: created "yesterday" is not a time: write times as 2026-03-01T`: csv("created\n2026-01-01T00:00:00Z\nyesterday\n"),
		`t.csv:2: created "2026-02-30T00:00:00Z" is not a time`:                  csv("created\n2026-02-30T00:00:00Z\n"),
		`t.csv:2: created "2026-02-28T00:00:00" is not a time`:                   csv("created\n2026-02-28T00:00:00\n"),
		`t.csv:2: held_seconds "-5" is not a number of seconds`:                  csv("created,held_seconds\n2026-02-20T00:00:00Z,-5\n"),
		`t.csv:2: held_seconds "NaN" is not a number of seconds`:                 csv("created,held_seconds\n2026-02-20T00:00:00Z,NaN\n"),
		`t.csv:1: header "time,held" has no column created`:                      csv("time,held\n2026-02-20T00:00:00Z,5\n"),
		`t.csv:2: created "x" is missing: write as many columns`:                 csv("held_seconds,created\nx\n"),
		"has no claims": csv("# nothing\ncreated\n"),
		"the line has more than 65536 characters":       csv("created\n" + strings.Repeat("x", 1<<20)),
		"--at-once 100 is":                              with("--at-once", "100"),
		"--at-once 0 is":                                with("--at-once", "0"),
		`--resume "0s"`:                                 with("--resume", "0s"),
		`--resume "8m,5m"`:                              with("--resume", "8m,5m"),
		`--install "soon"`:                              with("--install", "soon"),
		"--prices":                                      with("--prices", "running=lots"),
		`"asleep" is not`:                               with("--prices", "asleep=1"),
		"--train 2 is":                                  with("--train", "2"),
		`--from "noon"`:                                 with("--from", "noon"),
		"no claim is between":                           with("--from", "2030-01-01T00:00:00Z"),
		"no claim is between 2025":                      with("--from", "2025-01-01T00:00:00Z", "--to", "2025-02-01T00:00:00Z"),
		"--to 9999-01-01T00:00:00Z is more than":        with("--to", "9999-01-01T00:00:00Z"),
		"--at-once NaN is":                              with("--at-once", "NaN"),
		"--train NaN is":                                with("--train", "NaN"),
		"static.size is more than 5000":                 policy("static: {running: 1, size: 2000000000}"),
		"size.min 2000000000 is above 100000":           policy("size: {min: 2000000000}"),
		"--time-zone":                                   with("--time-zone", "Mars/Base"),
		"--max-size":                                    with("--max-size", "-2"),
		`--policy "static:x"`:                           with("--policy", "static:x"),
		`--policy "best" is`:                            with("--policy", "best"),
		"--failed-resumes":                              with("--failed-resumes", "100"),
		"omit -o name":                                  with("-o", "name"),
		"running.min 3 is above running.max 2: lower":   policy("running: {min: 3, max: 2}"),
		"size.min -1 is negative: use 0 or more":        policy("size: {min: -1}"),
		`budget "0" buys no cluster: use more than 0`:   policy("budget: 0"),
		`budget "100" needs prices: set prices`:         policy("budget: 100"),
		`objective.immediate "100" is not a percentage`: policy("objective: {immediate: 100}"),
		"objective is incomplete: write {immediate":     policy("objective: {maxWait: 2m}"),
		`objective.quantile "0" is not a percentage`:    policy("objective: {maxWait: 2m, quantile: 0}"),
		`prices.running "0" is not a number above`:      policy("prices: {running: 0}"),
		"running.min 5 is above size.max 3, and only":   policy("running: {min: 5}\nsize: {max: 3}"),
		`unknown field "runs1"`:                         policy("kind: PoolPolicy\nspec: {runs1: {min: 1}}"),
		`objective.maxWait "soon" is not a duration`:    policy("objective: {maxWait: soon, quantile: 99}"),
		"keep one of them":                              policy("objective: {immediate: 99, maxWait: 2m}"),
		`unknown field "runs"`:                          policy("runs: {min: 3}"),
		`timeZone "Mars" is not`:                        policy("timeZone: Mars"),
		"static.running 5 is not":                       policy("static: {running: 5, size: 2}"),
		`calendar[0].start "tomorrow" is not a date`:    policy("calendar: [{name: x, start: tomorrow, demand: 0}]"),
		"hours[0].days \"weekdays\" is not a day":       schedule("hours: [{days: weekdays, from: 8, to: 18, running: 2}]"),
		"hours[0].from 18 and to 8 are not":             schedule("hours: [{days: mon, from: 18, to: 8, running: 2}]"),
		"hours[0].running -1 is not":                    schedule("hours: [{days: mon, from: 8, to: 18, running: -1}]"),
		"is not a schedule":                             schedule("hours: 5"),
		"reading the policy":                            with("--policy", "nope.yaml"),
		"reading the schedule":                          with("--policy", "schedule:nope.yaml"),
	} {
		_, _, err := call(t, "", append(args, "--no-hindsight")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}

func TestUnusualTracesAreReplayedAndReported(t *testing.T) {
	for want, in := range map[string]string{
		"the trace has one claim":                 "created\n2026-01-01T00:00:00Z\n",
		"1 lines were out of order":               "created\n2026-01-02T00:00:00Z\n2026-01-01T00:00:00Z\n2026-01-03T00:00:00Z\n",
		"1 claims arrived in the same second":     "created\n2026-01-02T00:00:00Z\n2026-01-02T00:00:00Z\n2026-01-03T00:00:00Z\n",
		"1 gaps of four weeks or more":            "created\n2026-01-02T00:00:00Z\n2026-06-02T00:00:00Z\n",
		"1 times have another time zone than UTC": "\ufeffcreated\r\n2026-01-02T00:00:00+05:45\r\n2026-01-02T00:00:00Z\r\n",
		"1 of 2 claims have no held_seconds":      "name,created,held_seconds\na,2026-01-02T00:00:00Z,\nb,2026-01-03T00:00:00.5Z,1.5\n",
		"no prices: the cost is not computed":     "created\n2026-01-02T00:00:00Z\n2026-01-03T00:00:00Z\n",
	} {
		stdout, stderr, err := call(t, in, "--trace", "-", "--train", "0", "-o", "json")
		if err != nil || !strings.Contains(stderr, want) {
			t.Errorf("%q: %v, notes %q", want, err, stderr)
			continue
		}
		var r Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Policies) != 1 || r.Policies[0].Claims == 0 || len(r.Hindsight) != 2 {
			t.Errorf("%q: %v: %s", want, err, stdout)
		}
	}
}

// With room for one cluster, no count serves claims that come a minute after each other.
func TestSettingsInHindsightThatServeTooFewAreNamed(t *testing.T) {
	_, stderr, err := call(t, "created\n2026-01-02T00:00:00Z\n2026-01-02T00:01:00Z\n2026-01-02T00:02:00Z\n", "--trace", "-", "--train", "0", "--max-size", "1")
	for _, want := range []string{"static:3 in hindsight serves fewer claims than the objective: 33.33%", "weekly in hindsight serves fewer claims"} {
		if err != nil || !strings.Contains(stderr, want) {
			t.Errorf("%q: %v, notes %q", want, err, stderr)
		}
	}
}

func TestTheChartIsReadableByPeopleAndPrograms(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"chart.svg", "chart.png"} {
		if _, _, err := call(t, "", "--trace", trace, "--policy", "static:2", "--no-hindsight", "--plot", filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(folder, "chart.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"prefers-color-scheme: dark", `role="img"`, "static:2: clusters that run without a claim", `class="running"`, `class="line wanted"`, `class="claims"`,
	} {
		if !strings.Contains(string(raw), word) {
			t.Errorf("it lacks %q", word)
		}
	}
	f, err := os.Open(filepath.Join(folder, "chart.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

func TestAWrongExtensionIsReportedBeforeAnyWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chart.jpg")
	_, _, err := call(t, "", "--trace", "nowhere.csv", "--plot", path)
	if err == nil || !strings.Contains(err.Error(), "use one that ends in .svg or .png") {
		t.Errorf("%v", err)
	}
}

func TestALongTrace(t *testing.T) {
	var b strings.Builder
	b.WriteString("created\n")
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const lines = 20_000
	for i := range lines {
		b.WriteString(begin.Add(time.Duration(i)*time.Minute).Format(time.RFC3339) + "\n")
	}
	stdout, _, err := call(t, b.String(), "--trace", "-", "--policy", "static:6", "--train", "0", "--no-hindsight", "-o", "json")
	if err != nil || !strings.Contains(stdout, fmt.Sprintf(`"claims": %d`, lines)) || !strings.Contains(stdout, `"immediate": 1,`) {
		t.Error(err, stdout)
	}
}
