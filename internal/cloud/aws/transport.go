package aws

import (
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"hotspare.io/hotspare/internal/cabundle"
)

// newHTTPClient is the SDK's, but for plain bodies. It follows no redirects: the signature
// is for one host.
func newHTTPClient(authorities *cabundle.Source) *http.Client {
	return &http.Client{
		Transport:     plainBodyTransport{authorities.NewTransport(awshttp.NewBuildableClient().GetTransport())},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plainBodyTransport hides what a request's body can do beside being read. smithy-go v1.28.8
// closes the body when the answer begins; net/http may only then look whether the
// body has more, by its WriteTo, which says io.EOF once closed. Taken for an error,
// that closes the connection in the middle of the answer.
type plainBodyTransport struct{ http.RoundTripper }

// RoundTrip sends r.
func (p plainBodyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: r is the caller's
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.RoundTripper.RoundTrip(r)
}
