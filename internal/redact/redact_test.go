package redact

import (
	"errors"
	"io/fs"
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
			got, err := ReadTail(path, 2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ReadTail(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
