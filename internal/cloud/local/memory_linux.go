package local

import (
	"fmt"
	"os"
	"strings"
)

// availableMemory reads MemAvailable; see proc_meminfo(5).
func availableMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the available memory: %w", err)
	}
	return parseMeminfo(string(raw)), nil
}

// parseMeminfo returns the MemAvailable value of a /proc/meminfo in bytes, or Unlimited if the text
// does not contain it.
func parseMeminfo(text string) int64 {
	for line := range strings.Lines(text) {
		var kB int64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kB); err == nil && n == 1 {
			return kB << 10
		}
	}
	return Unlimited
}
