package localauth_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/console/localauth"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestACodeLetsInOnceAndSoon(t *testing.T) {
	key := localauth.NewKey()
	flip := func(code string) string {
		last := "A"
		if strings.HasSuffix(code[:10], last) {
			last = "B"
		}
		return code[:9] + last + code[10:]
	}
	for name, c := range map[string]struct {
		code string
		at   time.Time
		want error
	}{
		"at once":                    {key.NewCode(now), now, nil},
		"after a minute":             {key.NewCode(now), now.Add(localauth.CodeLifetime), nil},
		"after more than a minute":   {key.NewCode(now), now.Add(localauth.CodeLifetime + time.Second), localauth.ErrExpired},
		"made for later than a code": {key.NewCode(now.Add(time.Hour)), now, localauth.ErrExpired},
		"made with another key":      {localauth.NewKey().NewCode(now), now, localauth.ErrForged},
		"changed":                    {flip(key.NewCode(now)), now, localauth.ErrForged},
		"nothing":                    {"", now, localauth.ErrForged},
		"no base64":                  {"%%%", now, localauth.ErrForged},
		"too long":                   {key.NewCode(now) + "AAAA", now, localauth.ErrForged},
	} {
		t.Run(name, func(t *testing.T) {
			if err := localauth.NewCodeVerifier(key).VerifyOnce(c.code, c.at); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	t.Run("a second time", func(t *testing.T) {
		keeper, code := localauth.NewCodeVerifier(key), key.NewCode(now)
		if err := keeper.VerifyOnce(code, now); err != nil {
			t.Fatal(err)
		}
		if err := keeper.VerifyOnce(code, now.Add(localauth.CodeLifetime)); !errors.Is(err, localauth.ErrUsed) {
			t.Errorf("a second time: %v", err)
		}
		if err := keeper.VerifyOnce(code[:8]+"\n"+code[8:], now); !errors.Is(err, localauth.ErrUsed) {
			t.Errorf("a second time, written otherwise: %v", err)
		}
		if err := keeper.VerifyOnce(key.NewCode(now), now); err != nil {
			t.Errorf("another code: %v", err)
		}
	})
}

func TestThePlateIsForItsOwnerOnly(t *testing.T) {
	path := localauth.EndpointPath(t.TempDir())
	if err := os.WriteFile(path, nil, 0o644); err != nil { // a file from an earlier version may have this mode
		t.Fatal(err)
	}
	p := localauth.Endpoint{URL: "http://127.0.0.1:9/", Key: localauth.NewKey()}
	if err := p.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := localauth.ReadEndpoint(path)
	if err != nil {
		t.Fatal(err)
	}
	link := got.LoginLink(now)
	code, found := strings.CutPrefix(link, "http://127.0.0.1:9/enter?code=")
	if !found || localauth.NewCodeVerifier(p.Key).VerifyOnce(code, now) != nil {
		t.Errorf("the link %s opens nothing", link)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	for name, text := range map[string]string{"empty": "", "no URL": "here\n", "a key that is none": p.URL + "\nkey\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := localauth.ReadEndpoint(path); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := localauth.ReadEndpoint(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestTheConsoleKeepsItsPort(t *testing.T) {
	dir := t.TempDir()
	open := func(address string) *localauth.Listener {
		t.Helper()
		s, err := localauth.Listen(dir, address)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open("127.0.0.1:0")
	where := first.Addr().String()
	if plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir)); err != nil || plate.URL != "http://"+where+"/" || plate.Key == nil {
		t.Errorf("the plate says %q, %v", plate.URL, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir)); err != nil || plate.Key != nil {
		t.Errorf("after it was closed the plate has a key, %v", err)
	}
	second := open("127.0.0.1:0")
	if second.Addr().String() != where {
		t.Errorf("at %s, and last time at %s", second.Addr(), where)
	}
	if string(second.Endpoint.Key) == string(first.Endpoint.Key) {
		t.Error("the key of last time")
	}
	t.Run("unless somebody else has it", func(t *testing.T) {
		third := open("127.0.0.1:0")
		defer third.Close()
		if third.Addr().String() == where {
			t.Errorf("two are at %s", where)
		}
	})
	t.Run("a port that was asked for and is taken is an error that says so", func(t *testing.T) {
		if s, err := localauth.Listen(dir, where); err == nil || !strings.Contains(err.Error(), "--console-address") {
			t.Errorf("%v, %v", s, err)
		}
	})
	if err := second.Listener.Close(); err != nil { // as the HTTP server does
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	t.Run("without a console there is no plate", func(t *testing.T) {
		for range 2 {
			if s, err := localauth.Listen(dir, "0"); s != nil || err != nil {
				t.Errorf("%v, %v", s, err)
			}
		}
		if _, err := os.Stat(localauth.EndpointPath(dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestTheConsoleIsForThisMachineOnly(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "0": true, "127.0.0.1:0": true, "[::1]:9080": true, "localhost:9080": true,
		":9080": false, "0.0.0.0:9080": false, "192.168.1.2:9080": false, "[::]:0": false, "example.com:1": false, "9080": false,
	} {
		err := localauth.CheckAddress(address)
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && !strings.Contains(err.Error(), "127.0.0.1:9080") {
			t.Errorf("%q: the error has no remedy: %v", address, err)
		}
	}
}

var _ net.Listener = (*localauth.Listener)(nil)
