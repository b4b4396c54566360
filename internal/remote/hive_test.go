package remote

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is a network that swallows packets.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// D20: in Hive a call of a cluster that swallows packets holds a worker for half a
// minute at least; in an outage those that could be helped wait behind it.
func TestD20AClusterThatSwallowsPacketsHoldsAWorkerForTenSeconds(t *testing.T) {
	for name, call := range map[string]func(context.Context, *spokeClient) string{
		"asking how it is": func(ctx context.Context, a *spokeClient) string {
			_, err := a.observeSpoke(ctx, ObserveOptions{Operators: true, ResumeProbe: true})
			return describeNoAnswer(err)
		},
		"sending an probe": func(ctx context.Context, a *spokeClient) string {
			return describeNoAnswer(a.createOrUpdateProbe(ctx, "now"))
		},
		"asking for certificates": func(ctx context.Context, a *spokeClient) string {
			_, err := a.readCertificateRequests(ctx, ListRequestsOptions{Machines: true})
			return describeNoAnswer(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t)
			synctest.Test(t, func(t *testing.T) {
				a, err := newSpokeClient([]byte(kubeconfig(server.Server, token(secret))))
				if err != nil {
					t.Fatal(err)
				}
				a.http.Transport = hanging{}
				began := time.Now()
				if got, want := call(t.Context(), a), "no answer within 10s"; got != want {
					t.Errorf("told %q, want %q", got, want)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
