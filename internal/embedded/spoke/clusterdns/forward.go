package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	// attemptTimeout limits the time for one answer of an upstream.
	attemptTimeout = 1500 * time.Millisecond
	// forwardTimeout limits the time for a query. The C library of a pod asks again after 5 s.
	forwardTimeout = 4 * time.Second
	// maxForwarded is the number of queries that are forwarded at the same time. Each has a socket.
	maxForwarded = 100
	// rounds is the number of times that all upstreams are asked if none answers: UDP loses packets.
	rounds = 2
)

var (
	errNoUpstream = errors.New("the DNS server has no upstream")
	errBusy       = fmt.Errorf("the DNS server forwards %d queries already", maxForwarded)
)

// forwarder asks the upstreams.
type forwarder struct {
	upstreams *upstreamList
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	now       func() time.Time
	cache     *answerCache
	slots     chan struct{}
	// preferred is the index of the upstream that is asked first: the one that answered last.
	preferred atomic.Int64
}

func newForwarder(o Options, upstreams *upstreamList) *forwarder {
	return &forwarder{
		upstreams: upstreams, dial: o.Dial, now: o.Now,
		cache: newAnswerCache(maxCached), slots: make(chan struct{}, maxForwarded),
	}
}

// removeOwn returns the upstreams that are not one of the server's addresses, and those that are.
func removeOwn(upstreams, own []netip.AddrPort) (others, removed []netip.AddrPort) {
	for _, u := range upstreams {
		if slices.Contains(own, u) {
			removed = append(removed, u)
			continue
		}
		others = append(others, u)
	}
	return others, removed
}

// forward returns the answer to the question of the request. Its EDNS0 record is removed; its names are
// spelled as in the question.
func (f *forwarder) forward(ctx context.Context, request *dns.Msg, q dns.Question) (*dns.Msg, error) {
	upstreams := f.upstreams.get(ctx)
	if len(upstreams) == 0 {
		return nil, errNoUpstream
	}
	query := newQuery(request, q)
	key := cacheKey{name: dns.CanonicalName(q.Name), qtype: q.Qtype, checkingDisabled: query.CheckingDisabled}
	if opt := query.IsEdns0(); opt != nil {
		key.dnssec = opt.Do()
	}
	if answer := f.cache.get(key, f.now()); answer != nil {
		return spellNames(answer, q), nil
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	answer, err := f.askUpstreams(ctx, upstreams, query)
	if err != nil {
		return nil, fmt.Errorf("forwarding %s %s: %w", q.Name, dns.TypeToString[q.Qtype], err)
	}
	answer.Extra = slices.DeleteFunc(answer.Extra, isOPT)
	f.cache.put(key, answer, f.now())
	return spellNames(answer, q), nil
}

// newQuery returns the query for an upstream. It uses EDNS0 only if the client does: a client whose
// resolver cannot use it works as if it asked the resolver itself.
func newQuery(request *dns.Msg, q dns.Question) *dns.Msg {
	query := &dns.Msg{Question: []dns.Question{q}}
	query.Id = dns.Id()
	query.RecursionDesired = request.RecursionDesired
	query.CheckingDisabled = request.CheckingDisabled
	query.AuthenticatedData = request.AuthenticatedData
	if opt := request.IsEdns0(); opt != nil {
		query.SetEdns0(maxUDPSize, opt.Do())
	}
	return query
}

// spellNames gives the records of the question's name the case of the question: the answer may have
// been kept for somebody who spelled it in another way.
func spellNames(answer *dns.Msg, q dns.Question) *dns.Msg {
	for _, r := range answer.Answer {
		if strings.EqualFold(r.Header().Name, q.Name) {
			r.Header().Name = q.Name
		}
	}
	return answer
}

// askUpstreams asks the upstreams until one knows the answer. If none does, it returns the first answer,
// such as SERVFAIL; if none answers, it asks all again.
func (f *forwarder) askUpstreams(ctx context.Context, upstreams []netip.AddrPort, query *dns.Msg) (*dns.Msg, error) {
	var errs []error
	for range rounds {
		answer, err := f.askEach(ctx, upstreams, query)
		if answer != nil {
			return answer, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// askEach asks each upstream once, beginning with the one that answered last.
func (f *forwarder) askEach(ctx context.Context, upstreams []netip.AddrPort, query *dns.Msg) (unknown *dns.Msg, _ error) {
	var errs []error
	first := int(f.preferred.Load())
	for i := range upstreams {
		index := (first + i) % len(upstreams)
		answer, err := f.ask(ctx, upstreams[index].String(), query)
		switch {
		case err != nil:
			errs = append(errs, err)
		case answer.Rcode == dns.RcodeSuccess || answer.Rcode == dns.RcodeNameError:
			f.preferred.Store(int64(index))
			return answer, nil
		case unknown == nil:
			unknown = answer
		}
		if ctx.Err() != nil {
			break
		}
	}
	return unknown, errors.Join(errs...)
}

func isOPT(r dns.RR) bool { return r.Header().Rrtype == dns.TypeOPT }
