package exec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/cloud/exec"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// patience is how long a program may take on a busy computer.
const patience = time.Minute

// newActuator returns an actuator for the stand-in recipe. Observe waits as long as a program takes.
func newActuator(t *testing.T, w recipetest.World, o exec.Options) *exec.Actuator {
	t.Helper()
	return newActuatorIn(t, w, runner.Folder(t.TempDir()), o)
}

// newActuatorIn is newActuator with the folder of the clusters.
func newActuatorIn(t *testing.T, w recipetest.World, folder runner.Folder, o exec.Options) *exec.Actuator {
	t.Helper()
	run, err := runner.NewProcesses(folder, runner.Options{StopGrace: 50 * time.Millisecond, SecretDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o.Runner, o.Catalog, o.Pause = run, runner.Catalog{Dir: w.Catalog}, 10*time.Millisecond
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.ObserveWait == 0 {
		o.ObserveWait = patience
	}
	if o.Secrets == nil {
		o.Secrets = func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
			return nil, fault.NewDenied("Secret %s does not exist", key)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := exec.New(ctx, o)
	t.Cleanup(func() {
		cancel()
		a.Wait()
	})
	return a
}

func refOf(infraID string) cloud.Ref {
	return cloud.Ref{
		Cluster: types.NamespacedName{Namespace: "ns", Name: "c"}, InfraID: infraID,
		Platform: hivev1.Platform{Exec: &hivev1.ExecPlatform{Recipe: recipetest.Name}},
	}
}

// createMachines creates the machines of a cluster in one state.
func createMachines(t *testing.T, w recipetest.World, infraID, state string, names ...string) {
	t.Helper()
	for _, name := range names {
		dir := filepath.Join(w.Home, "clusters", infraID, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state"), []byte(state+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestActuatorPassesTheSuiteOfClouds(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		w := recipetest.New(t)
		machine := func(ref cloud.Ref, name string) string { return filepath.Join(w.Home, "clusters", ref.InfraID, name) }
		return cloudtest.Cloud{
			Against:  "a test recipe whose machines are folders",
			Actuator: newActuator(t, w, exec.Options{}),
			Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
				createMachines(t, w, infraID, "Stopped", append([]string{"worker-0", "worker-1", "worker-2"}[:workers], "master-0")...)
				return refOf(infraID)
			},
			Vanish: func(t *testing.T, ref cloud.Ref, name string) {
				if err := os.RemoveAll(machine(ref, name)); err != nil {
					t.Fatal(err)
				}
			},
			Break: func(t *testing.T, ref cloud.Ref, name string) {
				if err := os.WriteFile(filepath.Join(machine(ref, name), "broken"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestStopReturnsAtOnceAndMachinesCountAsStopping(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "stop", "#!/bin/sh -eu\nwhile [ ! -e \"$STANDIN_HOME/let\" ]; do sleep 0.01; done\necho Stopped >\"$STANDIN_HOME/clusters/$HOTSPARE_INFRA_ID/master-0/state\"\n")
	a, ref := newActuator(t, w, exec.Options{}), refOf("c-12345")
	createMachines(t, w, ref.InfraID, "Running", "master-0")
	if ms, err := a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
		t.Fatalf("before: %v, %v", ms, err)
	}
	if err := a.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if ms, err := a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Stopping) {
		t.Errorf("while stop runs: %v, %v", ms, err)
	}
	if err := os.WriteFile(filepath.Join(w.Home, "let"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for { // the channel also reports the first observation
		select {
		case <-a.Changes():
		case <-time.After(patience):
			t.Fatal("the end of stop was not reported")
		}
		if ms, err := a.Observe(t.Context(), ref); err != nil {
			t.Fatal(err)
		} else if ms.AllIn(cloud.Stopped) {
			return
		}
	}
}

func TestAProgramThatHangsDelaysNoCall(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "observe", "#!/bin/sh\nsleep 60\n")
	a := newActuator(t, w, exec.Options{ObserveWait: time.Millisecond})
	_, err := a.Observe(t.Context(), refOf("c-12345"))
	if fault.KindOf(err) != fault.Wait || !strings.Contains(err.Error(), "observe") {
		t.Errorf("got %v, want fault.Wait", err)
	}
}

func TestTheExitCodeOfStopDecidesWhatFollows(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want fault.Kind
	}{
		"a request that is wrong is denied": {20, fault.Denied},
		"no room is a lack of capacity":     {30, fault.Capacity},
		"anything else is retried":          {1, fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := recipetest.New(t)
			a, ref := newActuator(t, w, exec.Options{}), refOf("c-12345")
			createMachines(t, w, ref.InfraID, "Running", "master-0")
			w.SetFault(t, "c", "stop", c.code)
			if err := a.Stop(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			if ms, err := a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
				t.Errorf("after stop has failed: %v, %v", ms, err)
			}
			if err := a.Stop(t.Context(), ref); err == nil || fault.KindOf(err) != c.want {
				t.Errorf("the next call returns %v (%s), want %s", err, fault.KindOf(err), c.want)
			}
			if again := a.Stop(t.Context(), ref); again == nil || fault.KindOf(again) != c.want || fault.RetryAfter(again) < time.Second {
				t.Errorf("a call soon after that returns %v (%s) after %s, and must not run stop", again, fault.KindOf(again), fault.RetryAfter(again))
			}
		})
	}
}

func TestWhetherAClusterHibernatesDependsOnItsRecipe(t *testing.T) {
	all, some := recipetest.New(t), recipetest.New(t, "start", "stop")
	if why := newActuator(t, all, exec.Options{}).HibernationObstacle(refOf("c").Platform); why != "" {
		t.Errorf("with start and stop: %s", why)
	}
	a := newActuator(t, some, exec.Options{})
	if why := a.HibernationObstacle(refOf("c").Platform); !strings.Contains(why, recipetest.Name) {
		t.Errorf("without them: %q", why)
	}
	if err := a.Stop(t.Context(), refOf("c")); fault.KindOf(err) != fault.Denied {
		t.Errorf("stop returns %v, want fault.Denied", err)
	}
}

func TestProgramsGetTheMetadataThatTheHubStores(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "observe", "#!/bin/sh\ncp \"$HOTSPARE_DIR/input.json\" \"$STANDIN_HOME/seen\"\nprintf '{\"apiVersion\":\"recipe.hotspare.io/v1\",\"machines\":[]}'\n")
	reads := map[string]map[string][]byte{
		"c-metadata-json": {hivev1.SecretKeyMetadata: []byte(`{"infraID":"c-12345","exec":{"recipe":"standin","input":{"name":"c","uid":"u","with":{"workers":"3"},"metadata":{"zone":"b"}}}}`)},
	}
	a := newActuator(t, w, exec.Options{Secrets: func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
		if key.Namespace != "ns" || reads[key.Name] == nil {
			return nil, errors.New("not that one")
		}
		return reads[key.Name], nil
	}})
	ref := refOf("c-12345")
	ref.Metadata = &hivev1.ClusterMetadata{InfraID: ref.InfraID, MetadataJSONSecretRef: &corev1.LocalObjectReference{Name: "c-metadata-json"}}
	if _, err := a.Observe(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(w.Home, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"workers": "3"`, `"zone": "b"`, `"infraID": "c-12345"`, `"uid": "u"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the input lacks %s: %s", want, raw)
		}
	}
}

func TestAnObserveThatBreaksTheContractIsAnError(t *testing.T) {
	const answer = `{"apiVersion":"recipe.hotspare.io/v1","machines":[%s]}`
	printMachines := func(machines string) string {
		return "#!/bin/sh\ncat <<'END'\n" + strings.Replace(answer, "%s", machines, 1) + "\nEND\n"
	}
	for name, c := range map[string]struct{ program, want string }{
		"garbage":               {"#!/bin/sh\nhead -c 1000 /dev/urandom\n", "not a valid JSON object"},
		"nothing":               {"#!/bin/sh\n", "observe printed nothing"},
		"too much":              {"#!/bin/sh\nhead -c 50000000 /dev/zero\n", "printed more than 1048576 bytes to standard output"},
		"an unknown state":      {printMachines(`{"name":"m","state":"on"}`), `in state "on": use one of Running`},
		"one machine twice":     {printMachines(`{"name":"m","state":"Running"},{"name":"m","state":"Running"}`), `machine "m" twice`},
		"a failure":             {"#!/bin/sh\necho 'the token has expired' >&2; exit 1\n", "code 1: the token has expired"},
		"exit code 10":          {"#!/bin/sh\nexit 10\n", "can be called again"},
		"a kill":                {"#!/bin/sh\nkill -9 $$\n", "ended by a signal"},
		"too large a state":     {"#!/bin/sh\nhead -c 2000000 /dev/zero >large\n", "more than 1048576 bytes in its state folder"},
		"no state folder":       {"#!/bin/sh\nrm -rf \"$HOTSPARE_DIR\"\n", "deleted its state folder"},
		"a secret, in an error": {"#!/bin/sh\nprintf 'password=hunter2'\n", "password=REDACTED"},
	} {
		t.Run(name, func(t *testing.T) {
			w := recipetest.New(t)
			w.WriteProgram(t, "observe", c.program)
			ms, err := newActuator(t, w, exec.Options{}).Observe(t.Context(), refOf("c-12345"))
			if err == nil || len(ms) > 0 || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, %v, want %q", ms, err, c.want)
			}
		})
	}
}
