//go:build linux

package containernode

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/pki"
)

func TestTheStatusOfAProcess(t *testing.T) {
	for line, want := range map[string]struct {
		id, parent int
		state      string
	}{
		"12 (sh) Z 1 12 12 0":      {12, 1, "Z"},
		"7 (a) Z 9 (b) ) S 3 0":    {7, 3, "S"},
		"9 () R 1":                 {9, 1, "R"},
		"4194304 (x\ny) Z 1 2 3 4": {4194304, 1, "Z"},
	} {
		id, parent, state, err := parseStat(line)
		if err != nil || id != want.id || parent != want.parent || state != want.state {
			t.Errorf("%q: %d, %d, %q, %v", line, id, parent, state, err)
		}
	}
	for _, line := range []string{"", "12", "12 (sh", "12 (sh)", "x (sh) Z 1", "12 (sh) Z y", ")( 1"} {
		if _, _, _, err := parseStat(line); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

func TestSecretsOfTheEnvironmentAreNotPassedOn(t *testing.T) {
	got := withoutSecrets([]string{"AWS_SECRET_ACCESS_KEY=x", "HOTSPARE_PARENT_PIPE=1", "HOTSPARE_TOKEN=y", "GOGC=20", "PATH=/bin", "broken"})
	if want := []string{"HOTSPARE_PARENT_PIPE=1", "GOGC=20"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestHeartbeatsPassOnlyThroughAnOpenGate(t *testing.T) {
	g := &heartbeatGate{}
	passed := 0
	transport := g.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		passed++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	send := func() error {
		response, err := transport.RoundTrip(&http.Request{})
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := send(); !errors.Is(err, errGateClosed) {
		t.Errorf("the gate was never opened: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.openUntilDone(ctx) }()
	for !g.isOpen() {
	}
	if err := send(); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
	if err := send(); !errors.Is(err, errGateClosed) || passed != 1 {
		t.Errorf("the gate was closed again: %v, %d requests passed", err, passed)
	}
}

func TestARemountKeepsTheFlagsOfAMount(t *testing.T) {
	const readOnly, noAccessTimes, noFolderAccessTimes, relativeAccessTimes = 0x1, 0x400, 0x800, 0x1000 // of statfs(2)
	for statfs, want := range map[int64]uintptr{
		0: 0,
		unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC:                     unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC,
		unix.MS_NOSUID | noAccessTimes | noFolderAccessTimes:                unix.MS_NOSUID,
		unix.MS_NODEV | relativeAccessTimes | noFolderAccessTimes:           unix.MS_NODEV,
		unix.MS_NOEXEC | readOnly | noFolderAccessTimes | 0x20 /* valid */ : unix.MS_NOEXEC,
	} {
		if got := keptFlags(statfs); got != want {
			t.Errorf("%#x: %#x, want %#x", statfs, got, want)
		}
	}
}

func TestContainerdShowsTheImageToken(t *testing.T) {
	const want = `[host."http://10.128.0.1:5000"]
  capabilities = ["pull", "resolve"]
  [host."http://10.128.0.1:5000".header]
    Hotspare-Image-Token = ["SECRET"]
`
	if got := string(registryHosts("SECRET")); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestTheControllerOfProcessesIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    bool
	}{
		"enabled":       {"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t48\t1\npids\t8\t33\t1\n", true},
		"disabled":      {"pids\t0\t1\t0\n", false},
		"not compiled":  {"cpu\t3\t48\t1\n", false},
		"a cut content": {"pids\t8", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cgroups")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := hasPIDController(path); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if hasPIDController(filepath.Join(t.TempDir(), "none")) {
		t.Error("there is no file")
	}
}

func TestKubeProxyUsesAPacketFilterThatWorks(t *testing.T) {
	noTable := errors.New("exit status 3: can't initialize iptables table `nat'")
	for name, c := range map[string]struct {
		iptables, nft error
		want          string
		err           string
	}{
		"both work":           {nil, nil, "iptables", ""},
		"only iptables works": {nil, errNoProgram, "iptables", ""},
		"only nft works":      {noTable, nil, "nftables", ""},
		"none works":          {noTable, errNoProgram, "", "iptables (exit status 3: can't initialize iptables table `nat') and nft (it does not exist)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selectProxyMode(func(program string) error { return map[string]error{"iptables": c.iptables, "nft": c.nft}[program] })
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// registerOnce registers the transport of kube-proxy, which is that of the process.
var registerOnce = sync.OnceValue(func() error {
	return registerNodeTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody, Request: r}, nil
	}))
})

// Connections of the node are closed when its certificate is renewed. client-go keeps those with a certificate from a file
// for up to 5 minutes.
func TestKubeProxyUsesTheConnectionsOfTheNode(t *testing.T) {
	if err := registerOnce(); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.NewCA("ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bootstrap := &rest.Config{Host: "https://10.128.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: ca.CertPEM()}}
	raw, err := clientcmd.Write(proxyKubeconfig(Options{Dir: t.TempDir(), Bootstrap: bootstrap}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusTeapot || config.CertFile != "" {
		t.Errorf("status %d, certificate %q, %v", response.StatusCode, config.CertFile, err)
	}
}

func TestPodsLeaveMemoryToOtherPrograms(t *testing.T) {
	for total, want := range map[uint64]string{512 << 20: "256Mi", 2 << 30: "1Gi", 64 << 30: "1Gi"} {
		if got := reservedMemory(total).String(); got != want {
			t.Errorf("of %d bytes %s are reserved, want %s", total, got, want)
		}
	}
}

func TestImagesAreDeletedBeforeNoPullIsPossible(t *testing.T) {
	for size, want := range map[int64]int64{0: 320 << 20, 2 << 30: 320 << 20, 4 << 30: 512 << 20, 10 << 30: 1 << 30, 1 << 40: 1 << 30} {
		got := imageReserve(size)
		if got != want || got <= registryapi.PullReserve {
			t.Errorf("%d bytes: %d, want %d", size, got, want)
		}
	}
}
