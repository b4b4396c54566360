package v1

import (
	"regexp"
	"strconv"
	"testing"
)

func TestParsePriority(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "10": 10, "-10": -10, "1000": 1000, "-1000": -1000} {
		if got, err := ParsePriority(text); got != want || err != nil {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"high", "1001", "-1001", "+1", "01", "-0", " 1", "1.5", "1e3", "0x10", "99999999999999999999"} {
		if got, err := ParsePriority(text); got != 0 || err == nil {
			t.Errorf("%q is %d, %v, want an error", text, got, err)
		}
	}
}

// The admission policy of claims accepts what ParsePriority accepts; its expression has this pattern.
func TestTheAdmissionPolicyAcceptsTheSamePriorities(t *testing.T) {
	pattern := regexp.MustCompile(`^(0|-?[1-9][0-9]{0,2}|-?1000)$`)
	for n := -1100; n <= 1100; n++ {
		text := strconv.Itoa(n)
		if _, err := ParsePriority(text); (err == nil) != pattern.MatchString(text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
