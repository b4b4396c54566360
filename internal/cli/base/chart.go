package base

import (
	"fmt"
	"os"

	"hotspare.io/hotspare/internal/plot"
)

// WriteChart writes a chart to a file, whose extension says in which format. Call plot.FormatOf before any
// work, so that a wrong one is reported at once.
func WriteChart(path string, c plot.Chart) error {
	format, err := plot.FormatOf(path)
	if err != nil {
		return err
	}
	raw, err := c.Encode(format)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}
