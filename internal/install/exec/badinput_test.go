package exec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe/recipetest"
)

// prints returns a program that prints text and exits with 0.
func prints(text string) string { return "#!/bin/sh\ncat <<'END'\n" + text + "\nEND\n" }

const preparedFormat = `{"apiVersion":"recipe.hotspare.io/v1","infraID":%q}`

func TestAPrepareThatBreaksTheContractIsReportedAndRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		kind    fault.Kind
		want    string
	}{
		"garbage":                {prints("creating…"), fault.Wait, "not a valid JSON object"},
		"nothing":                {"#!/bin/sh\n", fault.Wait, "printed nothing"},
		"too much":               {"#!/bin/sh\nhead -c 50000000 /dev/zero\n", fault.Wait, "printed more than 1048576 bytes"},
		"a path as infraID":      {prints(fmt.Sprintf(preparedFormat, "../c")), fault.Wait, `infraID "../c"`},
		"a secret":               {"#!/bin/sh\nprintf '" + preparedFormat[:len(preparedFormat)-3] + "\"%s\"}' \"$(cat \"$HOTSPARE_SECRETS/token\")\"\n", fault.Wait, "a value from $HOTSPARE_SECRETS"},
		"too large a state":      {prints(fmt.Sprintf(preparedFormat, "c-1")) + "head -c 2000000 /dev/zero >large\n", fault.Wait, "more than 1048576 bytes in its state folder"},
		"exit code 10":           {"#!/bin/sh\nexit 10\n", fault.Wait, "only create, destroy"},
		"exit code 20":           {"#!/bin/sh\necho no such region >&2; exit 20\n", fault.Denied, "no such region"},
		"exit code 30":           {"#!/bin/sh\nexit 30\n", fault.Capacity, "no capacity"},
		"another exit code":      {"#!/bin/sh\necho cannot log in >&2; exit 7\n", fault.Wait, "code 7: cannot log in"},
		"an interpreter missing": {"#!/no/such/interpreter\n", fault.Unknown, "check that the interpreter"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string][]byte{"token": []byte("opensesame-77")})
			r.w.WriteProgram(t, "prepare", c.program)
			var err error
			for err == nil || strings.HasSuffix(err.Error(), " runs") { // the program runs in the background
				_, err = r.executor.Prepare(t.Context(), r.req)
			}
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "opensesame") {
				t.Errorf("got %v (%s), want %s with %q", err, fault.KindOf(err), c.kind, c.want)
			}
			if left := r.w.ListClusters(t, ""); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
			// The user corrects the program.
			r.w.WriteProgram(t, "prepare", prints(fmt.Sprintf(preparedFormat, "c-1")))
			if md, err := waitForMetadata(t, func() (install.Metadata, error) { return r.executor.Prepare(t.Context(), r.req) }); err != nil || md.InfraID != "c-1" {
				t.Errorf("after the correction: %+v, %v", md, err)
			}
		})
	}
}

func TestPrepareRefusesAnInfraIDOfAnotherCluster(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.install(t); err != nil {
		t.Fatal(err)
	}
	machines, events := r.w.ListClusters(t, ""), len(r.w.ReadEvents(t, "c"))
	r.w.WriteProgram(t, "prepare", prints(fmt.Sprintf(preparedFormat, r.md.InfraID)))
	again := newRequest("c")
	again.UID = "uid-of-the-next-cluster-with-this-name"
	for name, req := range map[string]install.Request{"another name": newRequest("thief"), "the same name": again} {
		var err error
		for err == nil || strings.HasSuffix(err.Error(), " runs") {
			_, err = r.executor.Prepare(t.Context(), req)
		}
		if fault.KindOf(err) != fault.Wait || !strings.Contains(err.Error(), "infraID "+r.md.InfraID+", which belongs to ClusterDeployment ns-c/c with UID uid-c: derive the infraID from name, uid and attempt") {
			t.Errorf("%s: got %v, want fault.Wait", name, err)
		}
	}
	if got, err := waitForMetadata(t, func() (install.Metadata, error) { return r.executor.Prepare(t.Context(), r.req) }); err != nil || got.InfraID != r.md.InfraID {
		t.Errorf("the cluster itself gets %+v, %v", got, err)
	}
	if fmt.Sprint(r.w.ListClusters(t, "")) != fmt.Sprint(machines) || len(r.w.ReadEvents(t, "c")) != events {
		t.Errorf("the other cluster was touched: %v", r.w.ReadEvents(t, "c")[events:])
	}
}

func TestParametersThatAreNotInTheSchemaAreNamed(t *testing.T) {
	r := newRig(t, nil)
	r.req.Platform.Exec.With = map[string]hivev1.ExecParameter{"worker": "1", "workers": "many"}
	_, err := r.executor.Prepare(t.Context(), r.req)
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v, want fault.Denied", err)
	}
	for _, want := range []string{"spec.platform.exec", "with.worker: the recipe has no such parameter: use note, workers", `with.workers: "many" does not match ^[0-9]$`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestACreateThatBreaksTheContractFailsTheAttempt(t *testing.T) {
	for name, c := range map[string]struct{ program, want string }{
		"no kubeconfig":         {"#!/bin/sh\n", "wrote no file kubeconfig to $HOTSPARE_DIR"},
		"garbage as kubeconfig": {"#!/bin/sh\nhead -c 1000 /dev/urandom >\"$KUBECONFIG\"\n", "not a kubeconfig"},
		"too large a state":     {"#!/bin/sh\nhead -c 2000000 /dev/zero >large\n", "more than 1048576 bytes in its state folder"},
		"no state folder":       {"#!/bin/sh\nrm -rf \"$HOTSPARE_DIR\"\n", "deleted its state folder"},
		"too much output":       {"#!/bin/sh\nhead -c 50000000 /dev/zero\n", "printed more than 1048576 bytes to standard output"},
		"a signal":              {"#!/bin/sh\nkill -9 $$\n", "ended by a signal"},
		"a missing interpreter": {"#!/no/such/interpreter\n", "check that the interpreter in its first line exists"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.w.WriteProgram(t, "create", c.program)
			got, err := r.install(t)
			if err != nil || got.Phase != install.Failed || !strings.Contains(got.Log, c.want) {
				t.Errorf("got %s, %q, %v, want %q", got.Phase, got.Log, err, c.want)
			}
			r.destroyCompletely(t)
		})
	}
}

// destroyCompletely destroys the cluster and checks that nothing is left.
func (r *rig) destroyCompletely(t *testing.T) {
	t.Helper()
	if got, err := wait(t, func() (install.Result, error) { return r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md) }); err != nil || got.Phase != install.Succeeded {
		t.Errorf("destroying: %+v, %v", got, err)
	}
	if left := r.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestAFailedAttemptReportsTheOutputOfLogs(t *testing.T) {
	for name, c := range map[string]struct{ logs, want string }{
		"short":      {"#!/bin/sh\necho 'machine 1: out of memory'; echo 'export TOKEN=abc'\n", "logs c-"},
		"long":       {"#!/bin/sh\nseq 1000\necho 'machine 1: out of memory'\n", "machine 1: out of memory"},
		"it fails":   {"#!/bin/sh\necho 'machine 1: out of memory'\nexit 4\n", "logs exited with code 4"},
		"it is slow": {"#!/bin/sh\necho 'machine 1: out of memory'\nsleep 60\n", "logs did not end within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			path := filepath.Join(r.w.Catalog, recipetest.Name, "recipe.yaml")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(raw), "create: 30s", "create: 30s, logs: 3s", 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			r.w.WriteProgram(t, "create", "#!/bin/sh -eu\n. \"$HOTSPARE_RECIPE_DIR/common\"\nmkdir -p \"$home/master-0\"\necho creating machine 1 >&2\nexit 3\n")
			r.w.WriteProgram(t, "logs", c.logs)
			got, err := r.install(t)
			if err != nil || got.Phase != install.Failed || strings.Contains(got.Log, "abc") || !strings.HasSuffix(got.Log, "create exited with code 3: creating machine 1") {
				t.Errorf("got %+v, %v", got, err)
			}
			if logs, create := strings.Index(got.Log, "machine 1: out of memory"), strings.Index(got.Log, "\ncreating machine 1\n"); logs < 0 || create < logs || !strings.Contains(got.Log, c.want) {
				t.Errorf("the log is %q, want the output of logs and then that of create", got.Log)
			}
			r.destroyCompletely(t)
		})
	}
}

func TestConcurrentCallsStartOneCreate(t *testing.T) {
	r := newRig(t, nil)
	var err error
	if r.md, err = r.executor.Prepare(t.Context(), r.req); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if _, err := wait(t, func() (install.Result, error) { return r.executor.Install(t.Context(), r.req, r.md) }); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if events := r.w.ReadEvents(t, "c"); recipetest.CountEvents(events, "create") != 1 || recipetest.CountEvents(events, "observe") != 1 {
		t.Errorf("got %v, want create once", events)
	}
}

func TestInstallWaitsForADestructionOfTheSameInfraID(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.install(t); err != nil {
		t.Fatal(err)
	}
	r.w.WriteProgram(t, "destroy", "#!/bin/sh\nwhile [ ! -e \"$STANDIN_HOME/let\" ]; do sleep 0.01; done\nrm -rf \"$STANDIN_HOME/clusters/$HOTSPARE_INFRA_ID\"\n")
	if _, err := r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md); err != nil {
		t.Fatal(err)
	}
	if _, err := r.executor.Install(t.Context(), r.req, r.md); fault.KindOf(err) != fault.Wait || !strings.Contains(err.Error(), "is being destroyed") {
		t.Errorf("got %v, want fault.Wait", err)
	}
	if err := os.WriteFile(filepath.Join(r.w.Home, "let"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.destroyCompletely(t)
}

func TestARecipeThatChangesWhileItsClusterExists(t *testing.T) {
	dir := func(r *rig) string { return filepath.Join(r.w.Catalog, recipetest.Name) }
	for name, c := range map[string]struct {
		change, restore func(r *rig) error
		want            string
	}{
		"its folder is deleted": {
			func(r *rig) error { return os.Rename(dir(r), dir(r)+"-away") },
			func(r *rig) error { return os.Rename(dir(r)+"-away", dir(r)) }, "is not a recipe in",
		},
		"destroy is deleted": {
			func(r *rig) error { return os.Rename(dir(r)+"/destroy", dir(r)+"/destroy-away") },
			func(r *rig) error { return os.Rename(dir(r)+"/destroy-away", dir(r)+"/destroy") }, "program destroy is missing",
		},
		"destroy is not executable": {
			func(r *rig) error { return os.Chmod(dir(r)+"/destroy", 0o644) },
			func(r *rig) error { return os.Chmod(dir(r)+"/destroy", 0o755) }, "program destroy is not executable: run chmod +x",
		},
		"recipe.yaml becomes invalid": {
			func(r *rig) error { return os.Rename(dir(r)+"/recipe.yaml", dir(r)+"/away") },
			func(r *rig) error { return os.Rename(dir(r)+"/away", dir(r)+"/recipe.yaml") }, "has no file recipe.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if _, err := r.install(t); err != nil {
				t.Fatal(err)
			}
			if err := c.change(r); err != nil {
				t.Fatal(err)
			}
			for range 2 { // it is reported each time
				_, err := r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md)
				if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "spec.platform.exec.recipe") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want fault.Denied with %q", err, c.want)
				}
			}
			if err := c.restore(r); err != nil {
				t.Fatal(err)
			}
			r.destroyCompletely(t)
		})
	}
}

func TestACreateThatIsBeingReplacedIsCalledAgain(t *testing.T) {
	r := newRig(t, nil)
	f, err := os.OpenFile(filepath.Join(r.w.Catalog, recipetest.Name, "create"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.md, err = r.executor.Prepare(t.Context(), r.req); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, err := r.executor.Install(t.Context(), r.req, r.md); err != nil || got.Phase != install.Running {
			t.Fatalf("while it is written: %+v, %v", got, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := r.install(t); err != nil || got.Phase != install.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}
