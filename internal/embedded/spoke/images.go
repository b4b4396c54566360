package spoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"hotspare.io/hotspare/internal/embedded/imagestore"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// imageHeaderTimeout is how long a node may take to send a request after it has connected.
const imageHeaderTimeout = 10 * time.Second

// serveImages serves the images of this computer at the gateway of the network of pods, as a registry
// that nodes ask before all others, until ctx ends.
func serveImages(ctx context.Context, dir string, pods *podNetwork) error {
	listener, err := pods.Listen(machine.GatewayImagePort)
	if err != nil {
		return fmt.Errorf("serving images: %w", err)
	}
	store := machine.ImagesPath(filepath.Dir(filepath.Dir(dir)))
	server := &http.Server{Handler: imagestore.Open(store).Handler(), ReadHeaderTimeout: imageHeaderTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // pulls are repeated
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving images: %w", err)
	}
	return nil
}
