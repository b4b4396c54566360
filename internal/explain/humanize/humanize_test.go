package humanize

import (
	"strings"
	"testing"
)

func TestListsReadAsPeopleSayThem(t *testing.T) {
	for _, tt := range []struct{ words, list, few string }{
		{"", "", ""},
		{"a", "a", "a"},
		{"a b", "a and b", "a and b"},
		{"a b c", "a, b and c", "a, b and c"},
		{"a b c d e f", "a, b, c, d, e and f", "a, b, c, d, e and f"}, // not "and 1 more", which is no shorter
		{"a b c d e f g", "a, b, c, d, e, f and g", "a, b, c, d, e and 2 more"},
	} {
		if got := JoinWords(strings.Fields(tt.words)); got != tt.list {
			t.Errorf("List(%s) = %q, want %q", tt.words, got, tt.list)
		}
		if got := JoinFirstWords(strings.Fields(tt.words)); got != tt.few {
			t.Errorf("Few(%s) = %q, want %q", tt.words, got, tt.few)
		}
	}
}

func TestNumbersAgreeWithTheirWords(t *testing.T) {
	for got, want := range map[string]string{
		FormatCount(0, "claim"):                 "0 claims",
		FormatCount(1, "claim"):                 "1 claim",
		FormatCount(2, "claim"):                 "2 claims",
		FormatPlural(1, "unit is", "units are"): "1 unit is",
		FormatPlural(3, "unit is", "units are"): "3 units are",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
