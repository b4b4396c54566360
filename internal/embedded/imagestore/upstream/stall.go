package upstream

import (
	"context"
	"errors"
	"io"
	"time"
)

// StallTimeout is how long a registry may send nothing in the middle of content.
const StallTimeout = time.Minute

// ErrStalled is the error of a response that has stalled.
var ErrStalled = errors.New("the registry sends nothing")

// OpenWithStallTimeout opens content, and ends the response when a read takes longer than the timeout: the read then returns
// ErrStalled. ctx ends the reading, too.
func OpenWithStallTimeout(
	ctx context.Context, timeout time.Duration, open func(context.Context) (io.ReadCloser, Descriptor, error),
) (io.ReadCloser, Descriptor, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body, d, err := open(ctx)
	if err != nil {
		cancel(err)
		return nil, d, err
	}
	timer := time.AfterFunc(timeout, func() { cancel(ErrStalled) })
	return &stallReader{ReadCloser: body, ctx: ctx, timeout: timeout, timer: timer, cancel: cancel}, d, nil
}

// stallReader ends a response that stalls.
type stallReader struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // that of the response
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// Read implements io.Reader.
func (r *stallReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.timeout)
	defer r.timer.Stop()
	n, err := r.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(r.ctx), ErrStalled) {
		err = ErrStalled
	}
	return n, err
}

// Close ends the response.
func (r *stallReader) Close() error {
	r.timer.Stop()
	r.cancel(context.Canceled)
	return r.ReadCloser.Close()
}
