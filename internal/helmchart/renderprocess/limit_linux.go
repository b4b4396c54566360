package renderprocess

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limitResources limits the address space of this process to memory bytes and its processor time to seconds, and makes
// it the first one that the kernel ends when the machine, or the container, has no memory left.
func limitResources(memory, seconds uint64) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600); err != nil {
		return fmt.Errorf("preparing for a lack of memory: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("limiting the memory: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return fmt.Errorf("limiting the processor time: %w", err)
	}
	return nil
}
