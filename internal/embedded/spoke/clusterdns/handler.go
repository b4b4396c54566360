package clusterdns

import (
	"context"
	"slices"

	"github.com/miekg/dns"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

// maxUDPSize is the largest UDP message that the server sends and takes: larger ones are fragmented in
// many networks. A client that needs more asks again over TCP.
const maxUDPSize = 1232

// handler answers the queries of one socket.
type handler struct {
	*Server
	forwarder *forwarder
	ctx       context.Context // of Serve: package dns passes none to handlers
	udp       bool
}

// ServeDNS answers one query.
func (h *handler) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	reply := h.answer(h.ctx, request)
	h.fit(reply, request)
	if err := w.WriteMsg(reply); err != nil {
		klog.FromContext(h.ctx).V(1).Info("did not send an answer", "client", w.RemoteAddr().String(), "reason", err.Error())
	}
}

// answer returns the answer of any length.
func (h *handler) answer(ctx context.Context, request *dns.Msg) *dns.Msg {
	reply := new(dns.Msg).SetReply(request)
	reply.RecursionAvailable = len(h.forwarder.upstreams.get(ctx)) > 0
	if opt := request.IsEdns0(); opt != nil {
		reply.SetEdns0(maxUDPSize, opt.Do())
		if opt.Version() != 0 {
			reply.Rcode = dns.RcodeBadVers
			return reply
		}
	}
	switch {
	case len(request.Question) != 1: // package dns lets a message pass that consists of its header
		reply.Rcode = dns.RcodeFormatError
	case request.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	case request.Question[0].Qclass != dns.ClassINET || isMeta(request.Question[0].Qtype):
		reply.Rcode = dns.RcodeRefused
	default:
		h.answerQuestion(ctx, request, reply)
	}
	return reply
}

// isMeta reports whether the type is one that no record has, such as ANY and AXFR.
func isMeta(qtype uint16) bool {
	return qtype == dns.TypeNone || qtype == dns.TypeOPT || qtype >= 128 && qtype <= 255
}

func (h *handler) answerQuestion(ctx context.Context, request, reply *dns.Msg) {
	z, synced := h.zones.get()
	answer, ok := z.Lookup(request.Question[0])
	switch {
	case !ok:
		h.answerByUpstream(ctx, request, reply)
	case !synced:
		reply.Rcode = dns.RcodeServerFailure
	default:
		h.answerByZone(ctx, answer, request, reply)
	}
}

func (h *handler) answerByZone(ctx context.Context, answer zone.Answer, request, reply *dns.Msg) {
	reply.Authoritative = true
	reply.Rcode = answer.Rcode
	reply.Answer = rotate(answer.Records, request.Id)
	reply.Ns = answer.Authority
	reply.Extra = append(answer.Additional, reply.Extra...)
	if answer.Alias != "" {
		h.completeAlias(ctx, answer.Alias, request, reply)
	}
}

// completeAlias adds the records of a name outside of the cluster to which the answer leads. The C
// library of a pod does not ask for them: it expects the complete answer.
func (h *handler) completeAlias(ctx context.Context, name string, request, reply *dns.Msg) {
	question := request.Question[0]
	question.Name = name
	rest, err := h.forwarder.forward(ctx, request, question)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("did not resolve an ExternalName", "reason", err.Error())
		reply.Rcode = dns.RcodeServerFailure
		return
	}
	if reply.Rcode = rest.Rcode; rest.Rcode == dns.RcodeRefused {
		reply.Rcode = dns.RcodeServerFailure // the client's question was not refused
	}
	reply.Answer = append(reply.Answer, rest.Answer...)
	reply.Ns = rest.Ns
}

// answerByUpstream copies the answer of an upstream. Without any, the query is refused, as by every server
// that is responsible for some names only: SERVFAIL would announce a failure that may pass, and clients
// would ask again.
func (h *handler) answerByUpstream(ctx context.Context, request, reply *dns.Msg) {
	if len(h.forwarder.upstreams.get(ctx)) == 0 {
		reply.Rcode = dns.RcodeRefused
		return
	}
	answer, err := h.forwarder.forward(ctx, request, request.Question[0])
	if err != nil {
		klog.FromContext(ctx).V(1).Info("did not resolve a name", "reason", err.Error())
		reply.Rcode = dns.RcodeServerFailure
		return
	}
	reply.Rcode = answer.Rcode
	reply.AuthenticatedData = answer.AuthenticatedData
	reply.Answer, reply.Ns = answer.Answer, answer.Ns
	reply.Extra = append(answer.Extra, reply.Extra...)
}

// rotate returns the records beginning with one that depends on the ID of the query, which clients choose
// at random: many use the first address only. CNAME records stay in front of what they point to.
func rotate(records []dns.RR, id uint16) []dns.RR {
	first := slices.IndexFunc(records, func(r dns.RR) bool { return r.Header().Rrtype != dns.TypeCNAME })
	if first < 0 {
		return records
	}
	aliases, rest := records[:first], records[first:]
	at := int(id) % len(rest)
	return slices.Concat(aliases, rest[at:], rest[:at])
}

// fit shortens the answer to the size that the client and the transport can take. Additional records are
// left out first and without notice, because nobody has asked for them; then the TC bit makes the client
// ask again over TCP.
func (h *handler) fit(reply, request *dns.Msg) {
	size := dns.MaxMsgSize
	if h.udp {
		size = dns.MinMsgSize
		if opt := request.IsEdns0(); opt != nil {
			size = min(max(size, int(opt.UDPSize())), maxUDPSize)
		}
	}
	if reply.Compress = true; reply.Len() > size {
		reply.Extra = slices.DeleteFunc(reply.Extra, func(r dns.RR) bool { return !isOPT(r) })
	}
	reply.Truncate(size)
}
