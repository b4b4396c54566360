package up

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/console"
	"hotspare.io/hotspare/internal/embedded/hub"
	"hotspare.io/hotspare/internal/listen"
	"hotspare.io/hotspare/internal/version"
)

// serveConsole serves the console until ctx ends. A user with a code that was created with the key
// in the data folder is logged in as the person who runs the hub.
func serveConsole(ctx context.Context, o Options, h *hub.Hub) error {
	if o.consoleStand == nil {
		<-ctx.Done()
		return nil
	}
	admin := h.AdminConfig()
	s, err := console.New(ctx, console.Options{
		Hub:     console.NewHub(ctx, admin, admin, version.Get(), clock.RealClock{}),
		Key:     o.consoleStand.Endpoint.Key,
		Port:    o.consoleStand.Port(),
		Version: version.Get(),
		Clock:   clock.RealClock{},
		Log:     ctrl.Log.WithName("console"),
	})
	if err != nil {
		return err
	}
	return s.Serve(listen.LimitConnections(o.consoleStand, o.connections.console), nil)
}
