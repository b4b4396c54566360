package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// The client asks for no discovery: the hub in memory would not notice a kind that is missing.
func TestTheMapperKnowsWhatNamesMachines(t *testing.T) {
	for _, kind := range []string{"ClusterDeployment", "ClusterProvision", "ClusterDeprovision"} {
		if _, err := base.NewRESTMapper().RESTMapping(hivev1.GroupVersion.WithKind(kind).GroupKind(), hivev1.GroupVersion.Version); err != nil {
			t.Error(err)
		}
	}
}

func TestMachinesThatTheHubDoesNotKnowCanBeRemoved(t *testing.T) {
	cd := &hivev1.ClusterDeployment{}
	cd.Namespace, cd.Name = "home", "mine"
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: "mine-1"}
	attempt := &hivev1.ClusterProvision{}
	attempt.Namespace, attempt.Name = "home", "next-0"
	attempt.Spec.InfraID = new("next-1")
	r := newRig(t, interceptor.Funcs{}, []client.Object{cd, attempt}...)
	data := t.TempDir()
	folderOf := func(infraID string) string { return filepath.Join(data, "machines", infraID) }
	for _, infraID := range []string{"mine-1", "next-1", "stray-1"} {
		dir := filepath.Join(folderOf(infraID), infraID+"-master-0")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, machine.ConfigPath(dir), `{"name":"`+infraID+`-master-0"}`)
	}
	run := func(want int, says string, args ...string) {
		t.Helper()
		code := r.run(append(args, "--data-dir", data, "--kubeconfig", os.Getenv("KUBECONFIG"))...)
		if all := r.stdout.String() + r.stderr.String(); code != want || !strings.Contains(all, says) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s", args, code, want, says, all)
		}
	}
	run(0, "unknown to the hub", "local", "list")
	run(0, "home/next-0", "local", "list")
	run(1, "known to the hub as home/mine", "local", "remove", "mine-1")
	run(1, "known to the hub as home/next-0", "local", "remove", "next-1")
	run(1, "no machines of", "local", "remove", "other-1")
	lock, err := flock.Acquire(machine.LockPath(filepath.Join(folderOf("stray-1"), "stray-1-master-0")))
	if err != nil {
		t.Fatal(err)
	}
	run(1, "machines of stray-1 are running (1)", "local", "remove", "stray-1")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	run(0, "removed the machines of stray-1", "local", "remove", "stray-1")
	for infraID, there := range map[string]bool{"mine-1": true, "next-1": true, "stray-1": false} {
		if _, err := os.Stat(folderOf(infraID)); (err == nil) != there {
			t.Errorf("%s: %v", infraID, err)
		}
	}
	run(0, "", "local", "list", "-o", "name")
	if got := r.stdout.String(); got != "mine-1\nnext-1\n" {
		t.Errorf("left: %q", got)
	}
}
