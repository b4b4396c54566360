package base

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/simulate"
)

// ReadTrace reads a trace of claims from a CSV file; "-" is standard input.
func (a *App) ReadTrace(path string) (simulate.Trace, error) {
	if path == "-" {
		return simulate.ReadTrace("standard input", a.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return simulate.Trace{}, fmt.Errorf("reading the claims: %w", err)
	}
	trace, err := simulate.ReadTrace(filepath.Base(path), f)
	return trace, errors.Join(err, f.Close())
}
