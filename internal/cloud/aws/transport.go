package aws

import (
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"hotspare.io/hotspare/internal/cabundle"
)

// newHTTPClient returns the SDK's client with plainBodyTransport. It follows no redirects: a
// signature is valid for one host only.
func newHTTPClient(authorities *cabundle.Source) *http.Client {
	return &http.Client{
		Transport:     plainBodyTransport{authorities.NewTransport(awshttp.NewBuildableClient().GetTransport())},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plainBodyTransport hides all methods of a request's body except Read and Close. smithy-go v1.28.8
// closes the body when the response begins; net/http may check only then whether the body has more
// data, by calling its WriteTo, which returns io.EOF once closed. net/http treats that as an error
// and closes the connection in the middle of the response.
type plainBodyTransport struct{ http.RoundTripper }

// RoundTrip sends r.
func (p plainBodyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the caller owns r
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.RoundTripper.RoundTrip(r)
}
