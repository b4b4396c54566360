package renderprocess

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/helmchart"
	"hotspare.io/hotspare/internal/helmchart/helmcharttest"
)

// TestMain lets the test binary be the program that renders.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == commandName {
		c := NewCommand()
		c.SetArgs([]string{})
		if err := c.Execute(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func request(template string) helmchart.Request {
	return helmchart.Request{
		Archive: helmcharttest.Package(map[string]string{"templates/a.yaml": template}), Release: "web", Namespace: "web", KubernetesVersion: "v1.36.3",
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: {{ .Values.color }}}\n"

func TestAProcessRenders(t *testing.T) {
	r := request(configMap)
	r.Values = map[string]any{"color": "blue"}
	phases, err := Render(t.Context(), r)
	if err != nil || len(phases) != 1 || !strings.Contains(phases[0].Manifests[0], "color: blue") {
		t.Errorf("got %+v, %v", phases, err)
	}
}

func TestAProcessReportsWhatIsWrong(t *testing.T) {
	if _, err := Render(t.Context(), request(`{{ fail "set a host" }}`)); err == nil || !strings.Contains(err.Error(), "set a host") {
		t.Errorf("got %v", err)
	}
}

func TestAProcessKeepsItsLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits are for Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		template, want string
		limit          time.Duration
	}{
		"memory": {`{{ $x := "x" | repeat 1000000 }}{{ range until 20000 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, "MiB of memory", timeout},
		"time":   {`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, "was not rendered in 500ms", 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := renderWith(t.Context(), tc.limit, request(tc.template), self, commandName)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			t.Logf("%s: %v", time.Since(began).Round(time.Millisecond), err)
		})
	}
}

func TestOutputIsLimited(t *testing.T) {
	b := limitedBuffer{max: 4}
	if n, err := b.Write([]byte("1234")); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := b.Write([]byte("5")); err == nil || b.String() != "1234" {
		t.Errorf("got %v, %q", err, b.String())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renderWith(t.Context(), timeout, request(configMap), self, "-test.list=.*"); err == nil || !strings.Contains(err.Error(), "has answered something else") {
		t.Errorf("got %v", err)
	}
}
