package clusterdns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ParseResolvConf returns the resolvers of a file such as /etc/resolv.conf, for Options.Upstreams. Like
// the C library, it uses the valid lines of a file that also has others: an error names those, and is
// returned together with the resolvers.
func ParseResolvConf(r io.Reader) ([]string, error) {
	var out []string
	var errs []error
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != "nameserver" {
			continue // a comment, or an option for programs that send queries
		}
		upstream, err := parseNameserver(words)
		if err != nil {
			errs = append(errs, fmt.Errorf("resolv.conf: line %d: %w", number, err))
			continue
		}
		if !slices.Contains(out, upstream) {
			out = append(out, upstream)
		}
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("resolv.conf: %w", err))
	}
	return out, errors.Join(errs...)
}

func parseNameserver(words []string) (string, error) {
	if len(words) < 2 {
		return "", errors.New("nameserver has no address: write one, such as nameserver 192.0.2.1")
	}
	address, err := parseUpstream(words[1])
	if err != nil || address.Port() != dnsPort {
		return "", fmt.Errorf("nameserver %q is not the IP address of a resolver: write one, such as nameserver 192.0.2.1", words[1])
	}
	return address.String(), nil
}
