package clusterdns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   []string // in the error; none: valid
	}{
		"the defaults":               {func(*Options) {}, nil},
		"a domain with a final dot":  {func(o *Options) { o.Domain = "Cluster.Local." }, nil},
		"a domain of one label":      {func(o *Options) { o.Domain = "local" }, nil},
		"no source":                  {func(o *Options) { o.Source = nil }, []string{"source", "is not set"}},
		"a domain with a space":      {func(o *Options) { o.Domain = "cluster local" }, []string{"domain", `"cluster local"`, "cluster.local"}},
		"a domain with two dots":     {func(o *Options) { o.Domain = "cluster..local" }, []string{"domain", `"cluster..local"`}},
		"a domain that is the root":  {func(o *Options) { o.Domain = "." }, []string{"domain", `""`}},
		"a domain that is too long":  {func(o *Options) { o.Domain = strings.Repeat("a.", 28) + "bc" }, []string{"domain", "58", "57"}},
		"the longest domain":         {func(o *Options) { o.Domain = strings.Repeat("a.", 28) + "b" }, nil},
		"an upstream that is a name": {func(o *Options) { o.Upstreams = []string{"192.0.2.1", "dns.example"} }, []string{"upstreams", `"dns.example"`, "192.0.2.1:5353"}},
		"two bad upstreams":          {func(o *Options) { o.Upstreams = []string{"", "1.2.3.4:99999"} }, []string{`""`, `"1.2.3.4:99999"`}},
		"an upstream without port":   {func(o *Options) { o.Upstreams = []string{"1.2.3.4:0"} }, []string{`"1.2.3.4:0"`}},
		"all addresses":              {func(o *Options) { o.Upstreams = []string{"0.0.0.0"} }, []string{`"0.0.0.0"`}},
		"a group":                    {func(o *Options) { o.Upstreams = []string{"ff02::fb"} }, []string{`"ff02::fb"`}},
		"no network":                 {func(o *Options) { o.CIDRs = []netip.Prefix{{}} }, []string{"CIDRs", "invalid Prefix"}},
		"a network of everything":    {func(o *Options) { o.CIDRs = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} }, []string{"CIDRs", "0.0.0.0/0"}},
		"a network of IPv4 in IPv6":  {func(o *Options) { o.CIDRs = []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")} }, []string{"CIDRs", "::ffff:10.0.0.0/104"}},
		"several mistakes":           {func(o *Options) { o.Domain, o.Source, o.Upstreams = "a b", nil, []string{"x"} }, []string{`"a b"`, "source", `"x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Source: newSource()}
			c.change(&o)
			_, err := New(o)
			if (err != nil) != (len(c.want) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestParseUpstreams(t *testing.T) {
	got, err := parseUpstreams([]string{"192.0.2.1", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::1]:5353", "::ffff:192.0.2.9", "fe80::1%eth0", "127.0.0.53"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range got {
		texts = append(texts, a.String())
	}
	want := []string{"192.0.2.1:53", "192.0.2.1:5353", "[2001:db8::1]:53", "[2001:db8::1]:5353", "192.0.2.9:53", "[fe80::1%eth0]:53", "127.0.0.53:53"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

func TestParseResolvConf(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
		err  []string
	}{
		"an empty file":            {"", nil, nil},
		"two resolvers":            {"nameserver 192.0.2.1\nnameserver 2001:db8::1\n", []string{"192.0.2.1:53", "[2001:db8::1]:53"}, nil},
		"a link-local resolver":    {"nameserver fe80::1%eth0", []string{"[fe80::1%eth0]:53"}, nil},
		"comments and options":     {"# nameserver 192.0.2.8\n; nameserver 192.0.2.9\nsearch example\noptions ndots:5\n\n\tnameserver\t192.0.2.1 # first\r\n", []string{"192.0.2.1:53"}, nil},
		"the same resolver twice":  {"nameserver 192.0.2.1\nnameserver 192.0.2.1", []string{"192.0.2.1:53"}, nil},
		"a resolver without value": {"nameserver\nnameserver 192.0.2.1", []string{"192.0.2.1:53"}, []string{"line 1", "no address"}},
		"a resolver with a name":   {"nameserver 192.0.2.1\nnameserver dns.example", []string{"192.0.2.1:53"}, []string{"line 2", `"dns.example"`}},
		"a resolver with a port":   {"nameserver 192.0.2.1:5353", nil, []string{"line 1", `"192.0.2.1:5353"`}},
		"a line without end":       {"nameserver 192.0.2.1\n" + strings.Repeat("x", 1<<17), []string{"192.0.2.1:53"}, []string{"too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseResolvConf(strings.NewReader(c.file))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (len(c.err) > 0) {
				t.Fatalf("error: %v", err)
			}
			for _, part := range c.err {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			if _, err := parseUpstreams(got); err != nil {
				t.Errorf("the result is no list of upstreams: %v", err)
			}
		})
	}
}
