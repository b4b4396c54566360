package remote

import (
	"fmt"
	"io"
	"net/http"
)

// maxAnswer is the maximum size of a cluster's answer, decompressed. A Node takes 10 to 20 KiB.
const maxAnswer = 64 << 20

// limitedTransport fails the answers that are larger than limit. The users of a cluster decide what it answers, and the
// hub reads it into its memory.
type limitedTransport struct {
	http.RoundTripper
	limit int64
}

// RoundTrip sends the request.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if response != nil && response.Body != nil {
		response.Body = &limitedBody{ReadCloser: response.Body, left: t.limit, limit: t.limit, path: r.URL.Path}
	}
	return response, err
}

// CloseIdleConnections closes the connections that are not in use.
func (t limitedTransport) CloseIdleConnections() {
	if closer, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// limitedBody is the body of an answer to a request for path.
type limitedBody struct {
	io.ReadCloser
	left, limit int64
	path        string
}

// Read fails when the body has exceeded the limit.
func (b *limitedBody) Read(into []byte) (int, error) {
	if b.left >= 0 && int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the cluster's answer to %s has more than %d bytes", b.path, b.limit)
	}
	return n, err
}
