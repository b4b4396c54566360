package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hotspare.io/hotspare/internal/platform"
)

func TestWrongFlagsAreNamedWithARemedy(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"a platform that there is not": {"--platforms=aws,local", `there is no platform "local": choose from aws,`},
		"an address without a port":    {"--health-bind-address=8081", `--health-bind-address "8081" is not an address`},
		"metrics on no address":        {"--metrics-bind-address=x", `--metrics-bind-address "x" is not an address`},
		"a console on no address":      {"--console-bind-address=9443", `--console-bind-address "9443" is not an address`},
		"a console's URL for a name":   {"--console-host=https://hotspare.example.com", `--console-host "https://hotspare.example.com" is not a host name`},
		"a console's name with a port": {"--console-host=hotspare.example.com:9443", "without scheme and port"},
		"no namespace for the Lease":   {"--leader-elect-namespace=", "name the namespace of the Lease"},
		"installers as root":           {"--installer-user=0", "a user other than root"},
		"certificates of no Secret":    {"--additional-certificate-authorities=hotspare-system/a,ca.crt", `--additional-certificate-authorities "ca.crt" does not name a Secret: use namespace/name`},
		"certificates without a name":  {"--additional-certificate-authorities=hotspare-system/a,,hotspare-system/b", "names a Secret without a name: use namespace/name"},
		"a log of another format":      {"--log-format=xml", "choose text or json"},
		"less than no log":             {"--verbosity=-1", "give 0 or more"},
		"agents that find no way":      {"--agent-image=q/hotspare", "specify the URL under which data planes reach the hub"},
		"a way that is none":           {"--hub-server=hub.example.com", `--hub-server "hub.example.com" is not the address`},
		"a flag that there is not":     {"--leader", "unknown flag: --leader"},
		"a command that there is not":  {"start", `"start"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := newCommand()
			cmd.SetArgs([]string{c.args})
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if code := exitCode(err); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
		})
	}
}

func TestFlagsThatAreRightAreAccepted(t *testing.T) {
	for _, args := range []string{
		"", "--platforms=aws,none", "--health-bind-address=0 --metrics-bind-address=0", "--leader-elect=false --leader-elect-namespace=",
		"--console-bind-address=:9443 --console-host=hotspare.example.com,hotspare --console-host=10.0.0.1",
		"--installer-user=1000620000 --log-format=json -v 2",
		"--agent-image=q/hotspare --hub-server=https://hub.example.com:6443",
		"--global-pull-secret=hotspare-system/pull --additional-certificate-authorities=hotspare-system/a,hotspare-system/b",
	} {
		var f flags
		cmd := newCommand()
		cmd.ResetFlags()
		f.addFlags(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := f.validate(); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAgentsKnowTheHubByTheCertificateThatWasNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("named"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := &rest.Config{Host: "https://here", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("own")}}
	kept := &rest.Config{Host: "https://here", TLSClientConfig: rest.TLSClientConfig{CAFile: file}}
	for name, c := range map[string]struct {
		f          flags
		cfg        *rest.Config
		server, ca string
	}{
		"a file that was named":     {flags{server: "https://there", authority: file}, own, "https://there", "named"},
		"else our own":              {flags{server: "https://there"}, own, "https://there", "own"},
		"also that of a file":       {flags{server: "https://there"}, kept, "https://there", "named"},
		"and our own way, if alone": {flags{}, own, "https://here", "own"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, err := c.f.hubForAgents(c.cfg)
			if err != nil || hub.Server != c.server || string(hub.CA) != c.ca {
				t.Errorf("got %s, %s, %v", hub.Server, hub.CA, err)
			}
		})
	}
	if _, err := (&flags{authority: file + ".gone"}).hubForAgents(own); err == nil {
		t.Error("a file that is not there was accepted")
	}
}

func TestTheImageIsThatOfOurContainer(t *testing.T) {
	pod := func(name string, containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{Containers: containers}}
	}
	c := fake.NewClientBuilder().WithScheme(platform.JobScheme()).WithObjects(
		pod("with-a-sidecar", corev1.Container{Name: "proxy", Image: "p"}, corev1.Container{Name: "manager", Image: "q/m:v1"}),
		pod("of-another", corev1.Container{Name: "proxy", Image: "p"}),
	).Build()
	for name, want := range map[string]string{"with-a-sidecar": "q/m:v1", "of-another": "", "gone": ""} {
		got, err := readPodImage(t.Context(), c, types.NamespacedName{Namespace: "ns", Name: name})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: image %q, %v; want %q", name, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "set --image") {
			t.Errorf("%s: %v tells no remedy", name, err)
		}
	}
}
