package upstream

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// silentBody sends one byte, and then nothing until ctx ends.
type silentBody struct {
	ctx  context.Context //nolint:containedctx // that of the response
	sent bool
}

func (b *silentBody) Read(p []byte) (int, error) {
	if !b.sent {
		b.sent = true
		p[0] = 'x'
		return 1, nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b *silentBody) Close() error { return nil }

func TestAResponseThatStallsEnds(t *testing.T) {
	body, _, err := OpenWithStallTimeout(t.Context(), 10*time.Millisecond, func(ctx context.Context) (io.ReadCloser, Descriptor, error) {
		return &silentBody{ctx: ctx}, Descriptor{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(body)
	if string(raw) != "x" || !errors.Is(err, ErrStalled) {
		t.Errorf("read %q, %v", raw, err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}
