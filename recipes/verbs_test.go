package recipes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/recipe"
)

// TestImagesAndLogs calls the verbs that the conformance suite does not.
func TestImagesAndLogs(t *testing.T) {
	for _, name := range []string{"az-aks", "eksctl", "gcloud", "hotspare-local", "k3d", "kind", "kubeadm-ssh", "minikube", "talosctl", "terraform", "vcluster"} {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			k := killer{t: t, recipe: r, state: state, verb: "nothing"}
			k.prepare()
			k.call(recipe.Create)
			k.log.Reset()
			run := recipe.Run{Recipe: r, Verb: recipe.Logs, Input: k.cluster.Input, Dir: k.cluster.Dir, Secrets: k.cluster.Secrets, Log: &k.log}
			result, err := run.Do(t.Context())
			_, logs, _ := strings.Cut(k.log.String(), "\n") // without the heading
			if err != nil || result.Outcome != recipe.Done || strings.TrimSpace(logs) == "" {
				t.Errorf("logs: %+v, %v\n%s", result, err, k.log.String())
			}
			if want := slices.Contains([]string{"k3d", "kind", "minikube"}, name); r.Has(recipe.LoadImage) != want {
				t.Errorf("has load-image: %t, want %t", !want, want)
			} else if want {
				k.cluster.Input.Image = "example.com/team/app:v1"
				k.call(recipe.LoadImage)
				k.cluster.Input.Image = "missing:v1"
				if _, err := k.cluster.Call(t.Context(), recipe.LoadImage); err == nil {
					t.Error("an image that does not exist was loaded")
				}
			}
			k.call(recipe.Destroy)
		})
	}
}

// TestMinikubeReportsAStoppedKubelet stops the kubelet of one node, whose container runs.
func TestMinikubeReportsAStoppedKubelet(t *testing.T) {
	r, state := loadShipped(t, "minikube")
	k := &killer{t: t, recipe: r, state: state}
	k.prepare()
	k.call(recipe.Create)
	call := toolCall{State: state}
	call.remove("minikube", "kubelets", k.cluster.Input.InfraID+"-m02")
	ms, _, err := k.cluster.Observe(t.Context())
	if want := []cloud.State{cloud.Running, cloud.Failed, cloud.Running}; err != nil || !slices.EqualFunc(ms, want, func(m cloud.Machine, s cloud.State) bool { return m.State == s }) {
		t.Errorf("the machines are %s, and must be %v: %v", ms, want, err)
	}
	k.reach(recipe.Start, cloud.Running)
	k.call(recipe.Destroy)
}

// TestTalosctlChoosesAFreeNetwork creates a cluster when one network is free, and then another.
func TestTalosctlChoosesAFreeNetwork(t *testing.T) {
	r, state := loadShipped(t, "talosctl")
	call := toolCall{State: state}
	for i := range 256 {
		if i != 77 {
			call.write(fmt.Sprintf(`{"Subnet":"10.5.%d.0/24"}`, i), "docker", "networks", fmt.Sprintf("other-%d", i))
		}
	}
	k := &killer{t: t, recipe: r, state: state}
	k.prepare()
	k.call(recipe.Create)
	if n, ok := call.getDocker("networks", k.cluster.Input.InfraID); !ok || n.Subnet != "10.5.77.0/24" {
		t.Errorf("the network is %v", n)
	}
	k.verb = "another"
	k.prepare()
	if got := k.createOutcome(); got != recipe.NoRoom {
		t.Errorf("without a free network, the outcome is %s:\n%s", got, k.log.String())
	}
}

// TestEksctlDestroysStacksWithoutTheClusterStack destroys a cluster of which one stack is left, which eksctl
// does not find.
func TestEksctlDestroysStacksWithoutTheClusterStack(t *testing.T) {
	r, state := loadShipped(t, "eksctl")
	k := &killer{t: t, recipe: r, state: state}
	k.prepare()
	infraID := k.cluster.Input.InfraID
	toolCall{State: state}.saveResource(resource{
		Kind: "stacks", Name: "eksctl-" + infraID + "-addon-vpc-cni", State: "CREATE_COMPLETE", Fields: map[string]string{"cluster": infraID},
	})
	k.call(recipe.Destroy)
	k.checkNothingLeft()
}
