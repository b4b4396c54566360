package provision

import "testing"

func TestTheLastLineOfALogIsToldInItsOwnWords(t *testing.T) {
	for log, want := range map[string]string{
		"":                 "",
		"one\nno room\n\n": "no room",
		"time=2026-11-21T22:41:43.539Z level=ERROR msg=\"port 6443 is taken: see `ss -ltnp`\"\n": "port 6443 is taken: see `ss -ltnp`",
		`level=error msg="no host \"api\"\nanswers"`:                                             `no host "api" answers`,
		`level=error msg="no host answers" host=api`:                                             `level=error msg="no host answers" host=api`,
		`level=error msg="no host`:                                                               `level=error msg="no host`,
		`level=error msg=timeout`:                                                                `level=error msg=timeout`,
	} {
		if got := lastLogLine(log); got != want {
			t.Errorf("%q: got %q, want %q", log, got, want)
		}
	}
}
