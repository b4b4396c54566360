package clusterdns

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

func answerOf(rcode int, lines ...string) *dns.Msg {
	return records(rcode, lines...)("", query(dns.TypeA, "www.example"))[0]
}

func TestCacheTTL(t *testing.T) {
	truncated := answerOf(dns.RcodeSuccess, "www.example. 20 IN A 203.0.113.1")
	truncated.Truncated = true
	additional := answerOf(dns.RcodeSuccess, "www.example. 20 IN A 203.0.113.1")
	additional.Extra = answerOf(dns.RcodeSuccess, "a.example. 7 IN A 203.0.113.1").Answer
	for name, c := range map[string]struct {
		answer *dns.Msg
		want   time.Duration
	}{
		"the TTL":                             {answerOf(dns.RcodeSuccess, "www.example. 20 IN A 203.0.113.1"), 20 * time.Second},
		"the shortest TTL":                    {answerOf(dns.RcodeSuccess, "www.example. 20 IN CNAME a.example.", "a.example. 10 IN A 203.0.113.1"), 10 * time.Second},
		"the TTL of additional records":       {additional, 7 * time.Second},
		"a long TTL":                          {answerOf(dns.RcodeSuccess, "www.example. 86400 IN A 203.0.113.1"), maxCacheTTL},
		"no TTL":                              {answerOf(dns.RcodeSuccess, "www.example. 0 IN A 203.0.113.1"), 0},
		"no name, the minimum of the SOA":     {answerOf(dns.RcodeNameError, "example. 20 IN SOA a. b. 1 2 3 4 5"), 5 * time.Second},
		"no name, the TTL of the SOA":         {answerOf(dns.RcodeNameError, "example. 4 IN SOA a. b. 1 2 3 4 5"), 4 * time.Second},
		"no name, no SOA":                     {answerOf(dns.RcodeNameError), 0},
		"an alias of no name, no SOA":         {answerOf(dns.RcodeNameError, "www.example. 20 IN CNAME a.example."), 0},
		"no records of the type":              {answerOf(dns.RcodeSuccess, "example. 20 IN SOA a. b. 1 2 3 4 5"), 5 * time.Second},
		"no records of the type and no SOA":   {answerOf(dns.RcodeSuccess), 0},
		"an alias of no records":              {answerOf(dns.RcodeSuccess, "www.example. 20 IN CNAME a.example.", "example. 20 IN SOA a. b. 1 2 3 4 5"), 5 * time.Second},
		"a failure":                           {answerOf(dns.RcodeServerFailure, "example. 20 IN SOA a. b. 1 2 3 4 5"), 0},
		"a truncated answer is not the whole": {truncated, 0},
	} {
		if got := cacheTTL(c.answer); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestCache(t *testing.T) {
	now, advance := clock()
	c := newAnswerCache(3)
	key := func(i int) cacheKey { return cacheKey{name: fmt.Sprintf("%d.example.", i), qtype: dns.TypeA} }
	put := func(i int) { c.put(key(i), answerOf(dns.RcodeSuccess, "www.example. 20 IN A 203.0.113.1"), now()) }
	present := func() (out string) {
		for i := range 9 {
			if c.get(key(i), now()) != nil {
				out += fmt.Sprint(i)
			}
		}
		return out
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"is empty at first", func() {}, ""},
		{"keeps what fits", func() { put(0); put(1); put(2) }, "012"},
		{"removes the oldest", func() { put(3) }, "123"},
		{"does not remove for what is there already", func() { advance(5 * time.Second); put(2) }, "123"},
		{"knows that one was replaced", func() { put(4); put(5) }, "245"},
		{"keeps until the TTL", func() { advance(20*time.Second - 1) }, "245"},
		{"does not keep after the TTL", func() { advance(1); put(6) }, "6"},
		{"removes what is too old", func() { advance(time.Hour) }, ""},
	} {
		step.do()
		if got := present(); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
		if len(c.entries) != c.oldest.Len() || len(c.entries) > 3 {
			t.Errorf("%s: %d entries, %d in the list", step.what, len(c.entries), c.oldest.Len())
		}
	}
	if len(c.entries) != 0 {
		t.Errorf("%d entries are left", len(c.entries))
	}
}

func TestCachedAnswersAreCopies(t *testing.T) {
	now, advance := clock()
	c := newAnswerCache(1)
	original := answerOf(dns.RcodeSuccess, "www.example. 20 IN A 203.0.113.1")
	c.put(cacheKey{}, original, now())
	original.Answer[0].Header().Name = "changed."
	first := c.get(cacheKey{}, now())
	first.Answer[0].Header().Name = "changed."
	advance(3500 * time.Millisecond)
	if h := c.get(cacheKey{}, now()).Answer[0].Header(); h.Name != "www.example." || h.Ttl != 17 {
		t.Errorf("after 3.5 s: %v", h)
	}
	advance(-time.Hour) // the clock of a computer may go back
	if h := c.get(cacheKey{}, now()).Answer[0].Header(); h.Ttl != 20 {
		t.Errorf("before it was kept: %v", h)
	}
}

func TestForwardedAnswersAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, advance := clock()
		upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": echo}}
		s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial, Now: now})
		dnssec, unchecked := query(dns.TypeA, "a.example").SetEdns0(1232, true), query(dns.TypeA, "a.example")
		unchecked.CheckingDisabled = true
		for _, step := range []struct {
			what string
			ask  *dns.Msg
			pass time.Duration
			want int // queries of the upstream
		}{
			{"the first", query(dns.TypeA, "a.example"), 0, 1},
			{"the same", query(dns.TypeA, "a.example"), 0, 0},
			{"in another case, with EDNS0", query(dns.TypeA, "A.Example").SetEdns0(1232, false), 0, 0},
			{"with DNSSEC", dnssec, 0, 1},
			{"without checks", unchecked, 0, 1},
			{"another type", query(dns.TypeAAAA, "a.example"), 0, 1},
			{"another name", query(dns.TypeA, "b.example"), 0, 1},
			{"just before its time", query(dns.TypeA, "a.example"), maxCacheTTL - 1, 0},
			{"after its time", query(dns.TypeA, "a.example"), 1, 1},
		} {
			advance(step.pass)
			reply := s.ask(step.ask)
			if got := upstream.takeAsked(); len(got) != step.want {
				t.Errorf("%s: the upstream was asked %v", step.what, got)
			}
			if reply.Answer[0].Header().Name != step.ask.Question[0].Name {
				t.Errorf("%s: %v is not spelled as in the question", step.what, reply.Answer)
			}
			if (reply.IsEdns0() != nil) != (step.ask.IsEdns0() != nil) {
				t.Errorf("%s: EDNS0 is %v", step.what, reply.IsEdns0())
			}
		}
	})
}
