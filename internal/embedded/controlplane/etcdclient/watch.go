package etcdclient

import (
	"context"
	"io"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// watchClient calls etcd's server of watches in this process. etcd has such a client, too, whose
// streams keep no messages: one that sends an event while the other end sends a request waits for
// it, and both wait forever. These streams keep all messages until they are received, as the client
// of a connection does.
type watchClient struct {
	server etcdserverpb.WatchServer
}

// Watch opens a stream of watches, which ends with ctx.
func (w watchClient) Watch(ctx context.Context, _ ...grpc.CallOption) (etcdserverpb.Watch_WatchClient, error) {
	ctx, cancel := context.WithCancel(ctx)
	requests, responses := newQueue[*etcdserverpb.WatchRequest](), newQueue[*etcdserverpb.WatchResponse]()
	go func() {
		defer cancel()
		responses.close(w.server.Watch(serverStream{ctx: ctx, requests: requests, responses: responses}))
	}()
	return clientStream{ctx: ctx, requests: requests, responses: responses}, nil
}

// serverStream is the server's end of a stream.
type serverStream struct {
	grpc.ServerStream // has no headers: etcd's watches use none
	ctx               context.Context
	requests          *queue[*etcdserverpb.WatchRequest]
	responses         *queue[*etcdserverpb.WatchResponse]
}

// Context is the context of the stream.
func (s serverStream) Context() context.Context { return s.ctx }

// Send sends an answer, without waiting for the client.
func (s serverStream) Send(r *etcdserverpb.WatchResponse) error {
	s.responses.push(r)
	return s.ctx.Err()
}

// Recv waits for the next request.
func (s serverStream) Recv() (*etcdserverpb.WatchRequest, error) { return s.requests.pop(s.ctx) }

// clientStream is the client's end of a stream.
type clientStream struct {
	grpc.ClientStream
	ctx       context.Context
	requests  *queue[*etcdserverpb.WatchRequest]
	responses *queue[*etcdserverpb.WatchResponse]
}

// Context is the context of the stream.
func (c clientStream) Context() context.Context { return c.ctx }

// Send sends a request, without waiting for the server.
func (c clientStream) Send(r *etcdserverpb.WatchRequest) error {
	c.requests.push(r)
	return c.ctx.Err()
}

// Recv waits for the next answer.
func (c clientStream) Recv() (*etcdserverpb.WatchResponse, error) { return c.responses.pop(c.ctx) }

// CloseSend says that no more requests come.
func (c clientStream) CloseSend() error {
	c.requests.close(io.EOF)
	return nil
}

// A queue has one receiver, and never makes a sender wait.
type queue[T any] struct {
	changed chan struct{} // has an element if there may be something to receive

	mu     sync.Mutex
	items  []T
	closed bool
	err    error
}

func newQueue[T any]() *queue[T] { return &queue[T]{changed: make(chan struct{}, 1)} }

func (q *queue[T]) push(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.wakeReceiver()
}

// close makes pop return err, or io.EOF if it is nil, once it has returned all items.
func (q *queue[T]) close(err error) {
	if err == nil {
		err = io.EOF
	}
	q.mu.Lock()
	if !q.closed {
		q.closed, q.err = true, err
	}
	q.mu.Unlock()
	q.wakeReceiver()
}

func (q *queue[T]) wakeReceiver() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// pop waits for the next item, and returns it.
func (q *queue[T]) pop(ctx context.Context) (T, error) {
	for {
		if item, received, err := q.take(); received {
			return item, err
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
			item, received, err := q.take() // the reason of the end, if the sender has given one
			if !received {
				err = ctx.Err()
			}
			return item, err
		}
	}
}

// take returns the next item, or the error of close. It reports whether there is one of them.
func (q *queue[T]) take() (item T, received bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.items) > 0:
		item, q.items[0], q.items = q.items[0], item, q.items[1:]
		return item, true, nil
	case q.closed:
		return item, true, q.err
	}
	q.items = nil // give the memory of a burst back
	return item, false, nil
}
