package redact

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"what is no secret stays":        {"level=info msg=\"waiting for node a\"", "level=info msg=\"waiting for node a\""},
		"a named value goes":             {"password: hunter2 next", "password: REDACTED next"},
		"a name may be part of a longer": {"AWS_SECRET_ACCESS_KEY=abc/def x", "AWS_SECRET_ACCESS_KEY=REDACTED x"},
		"JSON too":                       {`{"token":"a b c","n":1}`, `{"token":REDACTED,"n":1}`},
		"and JSON within text":           {`msg="{\"auth\":\"Zm9v\"}"`, `msg="{\"auth\":REDACTED}"`},
		"the key of a kubeconfig":        {"client-key-data: LS0tLS1CRUdJTg==", "client-key-data: REDACTED"},
		"a password of kubeadmin":        {`login with "8sUaQ-mZ5Nf-JvKqt-3WxyP"`, `login with "REDACTED"`},
		"a header":                       {"Authorization: Bearer abcdefghij", "Authorization: Bearer REDACTED"},
		"a token of a service account":   {"got eyJhbGciOi.eyJpc3M.c2ln end", "got REDACTED end"},
		"a password in a URL":            {"https://me:pw@host/x", "https://me:REDACTED@host/x"},
		"a private key": {
			"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\nREDACTED\nb",
		},
		"a private key that is cut off": {"a\n-----BEGIN PRIVATE KEY-----\nMIIE", "a\nREDACTED"},
		"a known secret anywhere":       {"xxopensesamexx", "xxREDACTEDxx"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Text(c.in, "opensesame", "a", "")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fragments are parts of secrets, and what surrounds them.
var fragments = []string{
	"-----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----", "RSA ", "PRIVATE KEY-----", "-----END ", "MIIE", "\n",
	"password", "PassWord", "toKen", "\u212aey-data", "acce\u017f\u017f_key", `"auth`, `\`, `"`, ": ", "=", ":", " ", ",", "}", "hunter2",
	"bearer ", "Bearer\t", "BASIC ", "ba\u017fic ", "abcdefghij", "https://", "://me:", "@host/",
	"8sUaQ-mZ5Nf-", "JvKqt-3WxyP", "8sUaQ-mZ5Nf-JvKqt-3WxyP", "-", "eyJ", "eyJhbGciOi.", "AKIA", "ASIA", "ABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP", "0", "ä", "\xff",
}

// What the search for parts of a match leaves out contains no match.
func TestTextFindsWhatThePatternsFind(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	matched := make([]int, len(shapes))
	for range 3_000 {
		var in string
		for range 1 + random.IntN(12) {
			in += fragments[random.IntN(len(fragments))]
		}
		want := in
		for i, s := range shapes {
			before := want
			if want = s.replaceMatches(want); want != before {
				matched[i]++
			}
		}
		if got := Text(in); got != want {
			t.Fatalf("Text(%q) is %q, want %q", in, got, want)
		}
	}
	for i, n := range matched {
		if n == 0 {
			t.Errorf("%s has matched nothing: the test checks too little", shapes[i].pattern)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x\n", maxTail)
	for name, c := range map[string]struct{ in, want string }{
		"the last lines":           {"a\nb\nc\n", "b\nc\n"},
		"without a final newline":  {"a\nb\nc", "b\nc"},
		"all if there are no more": {"a\n", "a\n"},
		"nothing of nothing":       {"", ""},
		"the end of a long one":    {long + "y\nz\n", "y\nz\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.in), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadUnscrubbedTail(path, 2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ReadUnscrubbedTail(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
