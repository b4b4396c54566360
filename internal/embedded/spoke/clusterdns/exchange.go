package clusterdns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/miekg/dns"
)

// ask returns the complete answer of an upstream.
func (f *forwarder) ask(ctx context.Context, upstream string, query *dns.Msg) (*dns.Msg, error) {
	answer, err := f.exchange(ctx, "udp", upstream, query)
	if err == nil && answer.Truncated {
		answer, err = f.exchange(ctx, "tcp", upstream, query)
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", upstream, err)
	}
	return answer, nil
}

// exchange sends the query over a connection of its own, whose port nobody else knows, and returns the
// answer.
func (f *forwarder) exchange(ctx context.Context, network, upstream string, query *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := f.dial(ctx, network, upstream)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // unblocks what follows
	defer func() {
		if stop() {
			_ = conn.Close() // everything has been read
		}
	}()
	answer, err := exchangeMessages(conn, network, query)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // not that the connection is closed
	}
	return answer, err
}

func exchangeMessages(conn net.Conn, network string, query *dns.Msg) (*dns.Msg, error) {
	packed, err := query.Pack()
	if err != nil {
		return nil, fmt.Errorf("packing the query: %w", err)
	}
	if network == "tcp" {
		return exchangeStream(conn, packed, query)
	}
	return exchangePackets(conn, packed, query)
}

// exchangePackets ignores packets that are not the answer, which anybody can send.
func exchangePackets(conn net.Conn, packed []byte, query *dns.Msg) (*dns.Msg, error) {
	if _, err := conn.Write(packed); err != nil {
		return nil, err
	}
	buffer := make([]byte, dns.DefaultMsgSize)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		if answer := parseAnswer(buffer[:n], query); answer != nil {
			return answer, nil
		}
	}
}

func exchangeStream(conn net.Conn, packed []byte, query *dns.Msg) (*dns.Msg, error) {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)); err != nil {
		return nil, err
	}
	var length uint16
	if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(conn, raw); err != nil {
		return nil, err
	}
	answer := parseAnswer(raw, query)
	if answer == nil {
		return nil, errors.New("the message is not an answer to the query")
	}
	return answer, nil
}

// parseAnswer returns the message if it is an answer to the query, and nil otherwise. An extended rcode
// is about EDNS0 between the server and the upstream, and no answer to the client's question.
func parseAnswer(raw []byte, query *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	if err := m.Unpack(raw); err != nil && !m.Truncated {
		return nil
	}
	if m.Id != query.Id || !m.Response || m.Opcode != dns.OpcodeQuery || m.Rcode > 0xf {
		return nil
	}
	if len(m.Question) == 0 && m.Rcode != dns.RcodeSuccess {
		return m // some resolvers refuse a query with the header only
	}
	if len(m.Question) != 1 || !sameQuestion(m.Question[0], query.Question[0]) {
		return nil
	}
	return m
}

func sameQuestion(a, b dns.Question) bool {
	return a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}
