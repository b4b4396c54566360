package usernamespace

import (
	"slices"
	"strings"
	"testing"
)

func TestTheFirstRangeThatIsLargeEnoughIsUsed(t *testing.T) {
	for title, c := range map[string]struct {
		file string
		want Range
	}{
		"by name":               {"you:100000:65536", Range{100000, 65536}},
		"by ID":                 {"1000:100000:65536", Range{100000, 65536}},
		"of several":            {"you:5000:10\nyou:200000:65535\nyou:300000:100000", Range{200000, 65535}},
		"only small ones":       {"you:5000:10\nyou:6000:20\nyou:7000:5", Range{6000, 20}},
		"of another user":       {"me:100000:65536\n1001:200000:65536", Range{}},
		"an empty file":         {"", Range{}},
		"with what is no range": {"# you:1:70000\nyou\nyou:x:70000\nyou:1:\n:1:70000\nyou:0:70000\nyou:-5:70000\nyou:9:0\n you:100:70000 ", Range{100, 70000}},
	} {
		t.Run(title, func(t *testing.T) {
			if got := FindRange(c.file, "you", 1000); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestANamespaceHas65536IDs(t *testing.T) {
	got := mappingArguments(42, 1000, Range{First: 100000, Count: 1 << 20})
	if want := strings.Fields("42 0 1000 1 1 100000 65535"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestARangeThatIsTooSmallNamesTheCommand(t *testing.T) {
	err := checkRange(Range{First: 1, Count: 65534}, "user IDs", "/etc/subuid", "--add-subuids", "you")
	if err == nil || !strings.Contains(err.Error(), "usermod --add-subuids 100000-165535 you") {
		t.Errorf("the error is %v", err)
	}
	if err := checkRange(Range{First: 1, Count: MinCount}, "user IDs", "/etc/subuid", "--add-subuids", "you"); err != nil {
		t.Error(err)
	}
}
