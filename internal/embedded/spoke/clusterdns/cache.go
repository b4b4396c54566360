package clusterdns

import (
	"container/list"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxCached is the number of answers of upstreams that are kept.
	maxCached = 1000
	// maxCacheTTL limits the time for which an answer is kept.
	maxCacheTTL = 30 * time.Second
)

// cacheKey identifies a question. The flags are those that change an answer.
type cacheKey struct {
	name                     string // in lower case
	qtype                    uint16
	dnssec, checkingDisabled bool
}

// answerCache keeps answers of upstreams. If it is full, it removes the oldest.
type answerCache struct {
	mu      sync.Mutex
	max     int
	entries map[cacheKey]*list.Element
	oldest  *list.List // of *cacheEntry
}

type cacheEntry struct {
	cacheKey
	answer        *dns.Msg
	since, expiry time.Time
}

func newAnswerCache(size int) *answerCache {
	return &answerCache{max: size, entries: map[cacheKey]*list.Element{}, oldest: list.New()}
}

// get returns a copy of the answer, whose TTLs are reduced by the time that it was kept; nil if there
// is none.
func (c *answerCache) get(k cacheKey, now time.Time) *dns.Msg {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.entries[k]
	if found == nil {
		return nil
	}
	e := found.Value.(*cacheEntry)
	if !now.Before(e.expiry) {
		c.remove(found)
		return nil
	}
	answer := e.answer.Copy()
	age := uint32(max(0, now.Sub(e.since)) / time.Second)
	for _, r := range recordsOf(answer) {
		r.Header().Ttl -= age // the shortest is the time for which the answer is kept
	}
	return answer
}

// put keeps a copy of the answer, if its records allow that.
func (c *answerCache) put(k cacheKey, answer *dns.Msg, now time.Time) {
	ttl := cacheTTL(answer)
	if ttl <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[k]; old != nil {
		c.remove(old)
	}
	for len(c.entries) >= c.max {
		c.remove(c.oldest.Front())
	}
	c.entries[k] = c.oldest.PushBack(&cacheEntry{k, answer.Copy(), now, now.Add(ttl)})
}

func (c *answerCache) remove(e *list.Element) {
	delete(c.entries, e.Value.(*cacheEntry).cacheKey)
	c.oldest.Remove(e)
}

// cacheTTL returns the time for which the answer may be kept: the shortest TTL of its records. A
// negative answer has the TTL of its SOA record, and is not kept without one: RFC 2308.
func cacheTTL(answer *dns.Msg) time.Duration {
	if answer.Truncated || answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError {
		return 0
	}
	ttl, hasSOA := maxCacheTTL, false
	for _, r := range recordsOf(answer) {
		ttl = min(ttl, time.Duration(r.Header().Ttl)*time.Second)
		if soa, ok := r.(*dns.SOA); ok {
			ttl, hasSOA = min(ttl, time.Duration(soa.Minttl)*time.Second), true
		}
	}
	if !hasSOA && (answer.Rcode == dns.RcodeNameError || len(answer.Answer) == 0) {
		return 0
	}
	return ttl
}

// recordsOf returns the records of all sections.
func recordsOf(m *dns.Msg) []dns.RR {
	var out []dns.RR
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		out = append(out, section...)
	}
	return out
}
