package main

import (
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"
)

// serveRegistry serves an empty registry at the address.
func serveRegistry(address string) {
	fmt.Println("serving a registry at", address)
	fail(http.ListenAndServe(address, registry.New())) //nolint:gosec // a test
}
