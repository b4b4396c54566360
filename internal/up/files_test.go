package up

import (
	"strings"
	"testing"
)

func TestConnectionsLeaveFilesForHotspare(t *testing.T) {
	for _, files := range []uint64{minFiles, 1024, 4096, 1 << 20, 1<<64 - 1} {
		c, err := divideConnections(files)
		if err != nil {
			t.Fatal(err)
		}
		if c.api < 100 || c.console < 20 || c.metrics < 20 {
			t.Errorf("%d files: %+v are too few", files, c)
		}
		if used := uint64(c.api + c.console + c.metrics); used+ownFiles > files {
			t.Errorf("%d files: %+v leave fewer than %d", files, c, ownFiles)
		}
	}
	_, err := divideConnections(256)
	if err == nil || !strings.Contains(err.Error(), "256 files") || !strings.Contains(err.Error(), "640") || strings.Contains(err.Error(), "remove") {
		t.Errorf("too few: %v", err)
	}
}
