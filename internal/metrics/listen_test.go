package metrics_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/metrics"
)

func TestMetricsAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "0": true, "127.0.0.1:0": true, "127.8.0.1:9090": true, "[::1]:9090": true, "localhost:9090": true,
		":9090": false, "0.0.0.0:9090": false, "192.168.1.2:9090": false, "[::]:0": false, "example.com:1": false,
		"127.0.0.1": false, "9090": false,
	} {
		err := metrics.CheckAddress(address)
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && !strings.Contains(err.Error(), "127.0.0.1:9090") {
			t.Errorf("%q: the error has no remedy: %v", address, err)
		}
	}
}

// written returns the URL in the file; "" if there is none.
func written(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

func TestMetricsKeepTheirPort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	open := func(address string) net.Listener {
		t.Helper()
		l, err := metrics.Listen(path, address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := open("127.0.0.1:0")
	where := first.Addr().String()
	if want := "http://" + where + "/metrics"; written(t, path) != want {
		t.Errorf("the file says %q, want %q", written(t, path), want)
	}
	first.Close()
	second := open("127.0.0.1:0")
	if second.Addr().String() != where {
		t.Errorf("served on %s, and last time on %s", second.Addr(), where)
	}
	t.Run("unless somebody else has it", func(t *testing.T) {
		other := open("127.0.0.1:0")
		defer other.Close()
		if other.Addr().String() == where {
			t.Errorf("two listen on %s", where)
		}
	})
	t.Run("a port that was asked for and is taken is an error that says so", func(t *testing.T) {
		if l, err := metrics.Listen(path, where); err == nil || !strings.Contains(err.Error(), "--metrics-address") {
			t.Errorf("%v, %v", l, err)
		}
		if written(t, path) != "" {
			t.Errorf("the file says %q, and nothing is served", written(t, path))
		}
	})
	second.Close()
	t.Run("without metrics there is no file", func(t *testing.T) {
		open("127.0.0.1:0").Close()
		if l := open("0"); l != nil {
			t.Errorf("listens on %s", l.Addr())
		}
		if written(t, path) != "" {
			t.Errorf("the file says %q", written(t, path))
		}
	})
	t.Run("a file that somebody spoilt is as good as none", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("%zz"), 0o600); err != nil {
			t.Fatal(err)
		}
		open("127.0.0.1:0").Close()
	})
}
