package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// fleets is a hub with the objects of testdata/fleet/live.
func fleets(t *testing.T) *rig {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testdata, "fleet", "live", "world.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	docs := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	decoder := serializer.NewCodecFactory(base.Scheme).UniversalDeserializer()
	for doc := make([]byte, 64<<10); ; {
		n, err := docs.Read(doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := decoder.Decode(doc[:n], nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, doc[:n])
		}
		objects = append(objects, o.(client.Object))
	}
	return newRig(t, interceptor.Funcs{}, objects...)
}

func TestFleetTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"fleet-status":  {"fleet status -n fleet", "fleet status -A", "fleet status -n team-b", "fleet status", "fleet status -A -o name", "fleet status use1"},
		"fleet-explain": {"fleet explain use1 -n fleet", "fleet explain euc1 -n fleet", "fleet explain -n team-a", "fleet explain use1 -n team-b"},
		"fleet-explain-not": {
			"fleet explain nope -n fleet", "fleet explain use1", "fleet explain", "fleet explain use1 -A", "fleet explain a b", "fleet explain fleetregion.hotspare.io/use1 -n fleet -o name",
		},
		"fleet-view": {"fleet explain euc1 -n fleet -o json", "fleet status -n team-b -o yaml", "fleet status -n empty -o json"},
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, transcript(fleets(t), lines)) })
	}
}

// The data planes of a FleetRegion that was deleted run on, and cost what they did.
func TestDataPlanesOutliveTheirRegion(t *testing.T) {
	r := fleets(t)
	for _, name := range []string{"use1", "euc1"} {
		if err := r.hub.Delete(t.Context(), &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, "fleet-without-region", transcript(r, []string{"fleet status -n fleet", "fleet explain -n fleet", "fleet explain trial -n team-a", "fleet status -n team-a -o json"}))
}

// On a terminal there are colours and bars, and columns that do not fit are left out.
func TestFleetStatusOnTerminals(t *testing.T) {
	for name, width := range map[string]int{"wide": 180, "usual": 100, "narrow": 60} {
		r := fleets(t)
		r.terminal, r.width = true, width
		got := transcript(r, []string{"fleet status -n fleet", "fleet status -A", "fleet explain use1 -n fleet"})
		compare(t, "fleet-terminal-"+name, strings.ReplaceAll(got, "\x1b", "ESC"))
	}
}

func TestFleetStatusFitsTheTerminal(t *testing.T) {
	r := fleets(t)
	t.Setenv("NO_COLOR", "1")
	for r.terminal, r.width = true, 70; r.width < 200; r.width += 7 {
		r.run("fleet", "status", "-A")
		tables, _, _ := strings.Cut(r.stdout.String(), "\n\n2 instances") // what follows is to be copied whole
		tables, _, _ = strings.Cut(tables, "\n\nNothing is decided")
		for text := range strings.Lines(tables) {
			if n := utf8.RuneCountInString(text) - 1; n > r.width {
				t.Errorf("%d characters on a terminal of %d: %s", n, r.width, text)
			}
		}
		for _, word := range []string{"BackingOff", "Provisioning"} {
			if !strings.Contains(tables, word) {
				t.Errorf("no %s on a terminal of %d", word, r.width)
			}
		}
	}
}

// Explanations are broken into lines, and nothing of them is lost.
func TestFleetExplainIsBrokenIntoLines(t *testing.T) {
	r := fleets(t)
	t.Setenv("NO_COLOR", "1")
	for r.terminal, r.width = true, 90; r.width < 200; r.width += 11 {
		r.run("fleet", "explain", "use1", "-n", "fleet")
		tables, _, _ := strings.Cut(r.stdout.String(), "WHAT TO DO") // commands are to be copied whole
		for text := range strings.Lines(tables) {
			if n := utf8.RuneCountInString(text) - 1; n > r.width {
				t.Errorf("%d characters on a terminal of %d: %s", n, r.width, text)
			}
		}
		if strings.Contains(tables, "…") || !strings.Contains(tables, "spec.schedulable") {
			t.Errorf("something is lost on a terminal of %d:\n%s", r.width, tables)
		}
	}
}

// Every reason for which an instance waits has a next step.
func TestEveryWaitHasARemedy(t *testing.T) {
	r := fleets(t)
	if code := r.run("fleet", "explain", "-A", "-o", "json"); code != 0 {
		t.Fatal(r.stderr.String())
	}
	var v fleetplan.Fleet
	if err := json.Unmarshal(r.stdout.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for _, region := range v.Regions {
		for _, i := range region.Instances {
			if i.Decision.Action == scaling.Wait {
				waiting++
				if i.ToDo == nil || i.ToDo.Text == "" {
					t.Errorf("%s waits for reason %s, and nothing is said to do", i.Name, i.Decision.Reason)
				}
			}
		}
	}
	if waiting < 6 {
		t.Errorf("%d instances wait, want more", waiting)
	}
}

func TestCompletionOfRegions(t *testing.T) {
	r := fleets(t)
	for line, want := range map[string]string{"fleet explain -n fleet ": "euc1 use1", "fleet explain -n fleet use1 ": "", "fleet status -n fleet ": ""} {
		r.run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		got := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.stdout.String()), "\n"), func(s string) bool { return strings.HasPrefix(s, ":") })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

// Who may look into one namespace only sees what is there, and is told that there may be more.
func TestFleetStatusOfSomebodyWithRightsInOneNamespace(t *testing.T) {
	r := fleets(t)
	r.hub = interceptor.NewClient(r.hub, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if _, shared := list.(*v1alpha1.InstanceTypeList); o.Namespace == "" && !shared {
				return apierrors.NewForbidden(schema.GroupResource{Group: "hotspare.io"}, "", errors.New("no rights"))
			}
			return c.List(ctx, list, opts...)
		},
	})
	compare(t, "fleet-rights", transcript(r, []string{"fleet status -n fleet", "fleet status -A"}))
}
