package clusterdns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

func TestResolversOfAFileThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		now, advance := clock()
		all := &resolvers{of: map[string]resolver{"192.0.2.1:53": echo, "192.0.2.2:53": echo, "192.0.2.3:53": echo}}
		s := serve(t, Options{Source: newSource(), ResolvConf: path, Dial: all.Dial, Now: now})
		write := func(text string) func() {
			return func() {
				if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}
		}
		remove := func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for i, step := range []struct {
			what  string
			do    func()
			pass  time.Duration
			asked string // the resolver; "" if the query is refused
		}{
			{"there is no file yet", func() {}, 0, ""},
			{"it is empty at first", write(""), time.Second, ""},
			{"it names a resolver", write("nameserver 192.0.2.1\n"), time.Second, "192.0.2.1:53"},
			{"it has changed, and was read less than a second ago", write("nameserver 192.0.2.2\n"), time.Second - 1, "192.0.2.1:53"},
			{"it was read a second ago", func() {}, 1, "192.0.2.2:53"},
			{"it is empty", write(""), time.Second, "192.0.2.2:53"},
			{"it is missing", remove, time.Second, "192.0.2.2:53"},
			{"a line is damaged", write("nameserver x\nnameserver 192.0.2.3\n"), time.Second, "192.0.2.3:53"},
			{"the clock goes back", write("nameserver 192.0.2.1\n"), -time.Hour, "192.0.2.1:53"},
			{"it names the server only", write("nameserver 10.96.0.10\n"), time.Second, "192.0.2.1:53"},
		} {
			step.do()
			advance(step.pass)
			reply := s.ask(query(dns.TypeA, strings.Repeat("x", i+1)+".example")) // no answer that was kept
			asked := strings.Join(all.takeAsked(), " ")
			if step.asked == "" && (reply.Rcode != dns.RcodeRefused || reply.RecursionAvailable || asked != "") ||
				step.asked != "" && (reply.Rcode != dns.RcodeSuccess || !strings.Contains(asked, " "+step.asked+" ")) {
				t.Errorf("%s: %s, asked %q, want %q", step.what, summary(reply), asked, step.asked)
			}
		}
	})
}
