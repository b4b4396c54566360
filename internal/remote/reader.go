package remote

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"
)

// Reader reads paths of a cluster's API.
type Reader struct {
	spoke *spokeClient
	// owned is set if the connections are of this Reader alone.
	owned bool
}

// NewReader returns a Reader of the cluster that a kubeconfig reaches. Like a Connector, it refuses kubeconfigs
// that would run programs or read files. The caller must call Close.
func NewReader(kubeconfig []byte) (*Reader, error) {
	a, err := newSpokeClient(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &Reader{spoke: a, owned: true}, nil
}

// Reader returns a Reader of the cluster whose admin kubeconfig is in the Secret; or trouble, which says why there
// is none. An error is the hub's own.
func (c *Connector) Reader(ctx context.Context, secret types.NamespacedName) (reader *Reader, trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return nil, trouble, err
	}
	return &Reader{spoke: a}, "", nil
}

// Close closes the connections that belong to this Reader alone.
func (r *Reader) Close() {
	if r.owned {
		r.spoke.closeConnections()
	}
}

// ReadPath returns the answer to a GET of a path of the API. An answer of more than limit bytes is an error. See
// DescribeFailure for errors.
func (r *Reader) ReadPath(ctx context.Context, path string, query map[string]string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := r.spoke.core.RESTClient().Get().AbsPath(path)
	for name, value := range query {
		request = request.Param(name, value)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer stream.Close() //nolint:errcheck // it is read only
	raw, err := io.ReadAll(io.LimitReader(stream, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(raw)) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return raw, nil
}

// TooLargeError is the error of an answer that exceeds a limit.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the answer has more than %d bytes", e.Limit)
}
