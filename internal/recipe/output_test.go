package recipe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// logOf returns what a log contains after the parts were written.
func logOf(s *Scrubber, parts ...string) string {
	var out bytes.Buffer
	w := newLogWriter(&out, "", s)
	for _, p := range parts {
		_, _ = w.Write([]byte(p)) // it never fails
	}
	w.flush()
	return out.String()
}

func TestTheLogKeepsItsHeadAndItsTail(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	const lines = 200_000
	for i := range lines {
		fmt.Fprintf(&text, "line %07d\n", i)
	}
	for _, size := range []int{7, 4096, text.Len()} {
		var parts []string
		for rest := text.String(); rest != ""; rest = rest[min(size, len(rest)):] {
			parts = append(parts, rest[:min(size, len(rest))])
		}
		got := logOf(NewScrubber(nil), parts...)
		if len(got) > maxLogHead+maxLogTail+100 || len(got) < maxLogHead+maxLogTail-100 {
			t.Errorf("parts of %d bytes: the log has %d bytes", size, len(got))
		}
		if !strings.HasPrefix(got, "line 0000000\nline 0000001\n") || !strings.HasSuffix(got, fmt.Sprintf("\nline %07d\n", lines-1)) {
			t.Errorf("parts of %d bytes: the log begins %.30q", size, got)
		}
		omitted := text.Len() + len("[hotspare omitted 1551424 bytes of the log]\n") - len(got)
		if !strings.Contains(got, fmt.Sprintf("\n[hotspare omitted %d bytes of the log]\nline ", omitted)) {
			t.Errorf("parts of %d bytes: the log does not report that %d bytes are omitted", size, omitted)
		}
	}
}

func TestAVerbThatPrintsAGigabyte(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, mark string }{
		"of zeros": {`head -c 1000000000 /dev/zero >&2; echo >&2`, "\x00…\n"},
		"of lines": {`yes "creating machine" | head -c 300000000 >&2`, "[hotspare omitted "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			got, _, err := runScript(t, "", c.script+"; echo the end >&2", func(r *Run) { r.Log = &log })
			if err != nil || got.Outcome != Done {
				t.Errorf("got %+v, %v", got, err)
			}
			if log.Len() > maxLogHead+maxLogTail+maxLogLine || !strings.Contains(log.String(), c.mark) || !strings.HasSuffix(log.String(), "the end\n") {
				t.Errorf("the log has %d bytes and ends %q", log.Len(), log.String()[max(0, log.Len()-100):])
			}
		})
	}
}

func TestLinesOfALog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts []string
		want  string
	}{
		"nothing":                      {nil, ""},
		"a line without an end":        {[]string{"a", "b"}, "ab\n"},
		"a progress bar":               {[]string{"10%\r20%\r", "30%\n"}, "10%\n20%\n30%\n"},
		"a private key":                {[]string{"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow", "IBAAKC\n-----END RSA PRIVATE KEY-----\nb\n"}, "a\nREDACTED\nb\n"},
		"a private key that is cut":    {[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\n"}, "REDACTED\n"},
		"something that looks secret":  {[]string{"export TOKEN=abc\n"}, "export TOKEN=REDACTED\n"},
		"a known secret in two writes": {[]string{"using open", "sesame9 now\n"}, "using REDACTED now\n"},
	} {
		if got := logOf(NewScrubber(map[string][]byte{"f": []byte("opensesame9")}), c.parts...); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	// Wherever a secret is in a long line, no part of it is left.
	secret := "opensesame-and-more-of-it"
	for at := maxLogLine - 2*len(secret); at < maxLogLine+2*len(secret); at++ {
		if got := logOf(NewScrubber(map[string][]byte{"f": []byte(secret)}), strings.Repeat("x", at)+secret+strings.Repeat("x", 100)); strings.Contains(got, "opens") {
			t.Fatalf("at %d: the log contains a part of the secret: …%s", at, got[at-10:])
		}
	}
}

// secretFolder writes credentials in the formats that tools use.
func secretFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"token":            "tok-3f9a8b7c6d5e\n",
		"aws":              "[default]\naws_secret_access_key = wJalrXUtnFEMIK7MDENG\n",
		"clouds.yaml":      "clouds:\n  mine:\n    auth: {username: me, password: \"pass word-77\"}\n",
		"gcp.json":         `{"type":"service_account","client_email":"robot-5519@example.com"}`,
		"deeper/key.pem":   "-----BEGIN CERTIFICATE-----\nTUlJRGRUQ0NBbDJn\n-----END CERTIFICATE-----\n",
		"..data/short.txt": "ab",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// As the kubelet mounts a Secret.
	if err := os.Symlink("token", filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSecretsDoNotReachTheLogOrErrors(t *testing.T) {
	t.Parallel()
	values := []string{
		"tok-3f9a8b7c6d5e", "wJalrXUtnFEMIK7MDENG", "pass word-77", "robot-5519@example.com", "TUlJRGRUQ0NBbDJn",
		base64.StdEncoding.EncodeToString([]byte("tok-3f9a8b7c6d5e")),
	}
	check := func(t *testing.T, where, text string) {
		t.Helper()
		for _, v := range values {
			if strings.Contains(text, v) {
				t.Errorf("%s contains %s: %s", where, v, text)
			}
		}
	}
	for name, c := range map[string]struct{ verb, script string }{
		"messages":                   {"create", "cat \"$HOTSPARE_SECRETS\"/*[a-z] \"$HOTSPARE_SECRETS\"/deeper/* >&2; base64 -w0 \"$HOTSPARE_SECRETS/token\" >&2\nprintf '%s' tok-3f9a8b7c6d5e | base64 >&2; exit 1"},
		"an answer that is not JSON": {"observe", "printf 'xx%s' wJalrXUtnFEMIK7MDENG"},
		"a long answer":              {"observe", "printf '%070d%s' 0 wJalrXUtnFEMIK7MDENG"},
		"a state":                    {"observe", `printf '{"apiVersion":"recipe.hotspare.io/v1","machines":[{"name":"m","state":"pass word-77"}]}'`},
		"a reason":                   {"observe", `printf '{"apiVersion":"recipe.hotspare.io/v1","machines":[{"name":"m","state":"Failed","reason":"robot-5519@example.com is denied"}]}'`},
		"an infraID":                 {"prepare", `printf '{"apiVersion":"recipe.hotspare.io/v1","infraID":"tok-3f9a8b7c6d5e"}'`},
		"metadata":                   {"prepare", `printf '{"apiVersion":"recipe.hotspare.io/v1","infraID":"c","metadata":{"a":"tok-3f9a8b7c6d5e"}}'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := directories.with(programs{c.verb: "#!/bin/sh\n" + c.script + "\n"}).load(t)
			cluster := Cluster{Recipe: r, Dir: t.TempDir(), Secrets: secretFolder(t), Log: &log, Input: Input{Name: "c"}}
			var err error
			switch Verb(c.verb) {
			case Prepare:
				_, err = cluster.Prepare(t.Context())
			case Observe:
				ms, _, failed := cluster.Observe(t.Context())
				for _, m := range ms {
					check(t, "a reason", m.Reason)
				}
				if err = failed; name == "a reason" {
					err = fmt.Errorf("%w %v", failed, ms)
				}
			default:
				_, err = cluster.Call(t.Context(), Verb(c.verb))
				if log.Len() == 0 || !strings.Contains(log.String(), "REDACTED") {
					t.Errorf("the log is %q", log.String())
				}
			}
			if err == nil {
				t.Fatal("the verb succeeded")
			}
			check(t, "the error", err.Error())
			check(t, "the log", log.String())
		})
	}
}

func TestASecretsFolderThatCannotBeRead(t *testing.T) {
	t.Parallel()
	large := t.TempDir()
	if err := os.WriteFile(filepath.Join(large, "f"), make([]byte, maxSecrets+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, dir := range map[string]string{"no such file or directory": filepath.Join(large, "none"), "the files are larger than 1048576 bytes": large} {
		_, err := Run{Recipe: directories.load(t), Verb: Create, Dir: t.TempDir(), Secrets: dir}.Do(t.Context())
		if err == nil || !strings.Contains(err.Error(), "reading the secrets in "+dir) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
