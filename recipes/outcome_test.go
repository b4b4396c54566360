package recipes

import (
	"errors"
	"os"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/recipe"
)

// TestCreateSaysWhoseFaultItIs calls create with what the platform rejects. hotspare must not retry a
// wrong request, and must retry when the platform has no room.
func TestCreateSaysWhoseFaultItIs(t *testing.T) {
	for name, c := range map[string]struct {
		recipe, parameter, value string
		want                     recipe.Outcome
	}{
		"az-aks, VM size":            {"az-aks", "vm-size", "Standard_B1s", recipe.Invalid},
		"az-aks, resource group":     {"az-aks", "resource-group", "nowhere", recipe.Invalid},
		"az-aks, quota":              {"az-aks", "nodes", "99", recipe.NoRoom},
		"gcloud, machine type":       {"gcloud", "machine-type", "abacus-1", recipe.Invalid},
		"gcloud, project":            {"gcloud", "project", "another", recipe.Invalid},
		"gcloud, quota":              {"gcloud", "nodes", "99", recipe.NoRoom},
		"eksctl, version":            {"eksctl", "kubernetes-version", "1.9", recipe.Invalid},
		"eksctl, limit":              {"eksctl", "nodes", "99", recipe.NoRoom},
		"kind, image":                {"kind", "image", "missing:v1", recipe.Invalid},
		"kind, disk":                 {"kind", "workers", "49", recipe.NoRoom},
		"k3d, image":                 {"k3d", "image", "missing:v1", recipe.Invalid},
		"k3d, disk":                  {"k3d", "agents", "49", recipe.NoRoom},
		"talosctl, image":            {"talosctl", "image", "missing:v1", recipe.Invalid},
		"talosctl, disk":             {"talosctl", "workers", "49", recipe.NoRoom},
		"minikube, driver":           {"minikube", "driver", "kvm2", recipe.Invalid},
		"minikube, memory":           {"minikube", "memory", "999g", recipe.NoRoom},
		"minikube, version":          {"minikube", "kubernetes-version", "v1.9.9", recipe.Failed},
		"kubeadm-ssh, too few hosts": {"kubeadm-ssh", "workers", "9", recipe.NoRoom},
		"kubeadm-ssh, unknown host":  {"kubeadm-ssh", "hosts", "stranger.example", recipe.Failed},
		"terraform, argument":        {"terraform", "variables", "", recipe.Invalid},
		"terraform, module":          {"terraform", "source", "/modules/none", recipe.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, c.recipe)
			k := killer{t: t, recipe: r, state: state}
			k.prepare()
			k.cluster.Input.With[c.parameter] = c.value
			got := k.createOutcome()
			if got != c.want {
				t.Errorf("the outcome is %s, and not %s:\n%s", got, c.want, k.log.String())
			}
			if c.recipe == "kubeadm-ssh" && c.want == recipe.NoRoom { // it frees the hosts that it took
				k.checkNothingLeft()
			}
			k.cluster.Input.With = complete(t, r, parameters[c.recipe])
			k.call(recipe.Destroy)
			if left := listLeftovers(t, state, os.Getenv("HOME")); len(left) > 0 {
				t.Errorf("left over are %v", left)
			}
		})
	}
}

// createOutcome calls create until it does not ask to be called again.
func (k *killer) createOutcome() recipe.Outcome {
	for range maxCalls {
		again, err := k.cluster.Call(k.t.Context(), recipe.Create)
		var failed *recipe.VerbError
		switch {
		case errors.As(err, &failed):
			return failed.Outcome
		case err != nil:
			k.t.Fatal(err)
		case !again:
			return recipe.Done
		}
	}
	return recipe.InProgress
}

// TestCreateBeginsAgainWhenThereIsRoom calls create for machines that are out of stock at first. The clouds
// report it when the cluster exists already.
func TestCreateBeginsAgainWhenThereIsRoom(t *testing.T) {
	for name, machine := range map[string][2]string{
		"az-aks": {"vm-size", "Standard_D8s_v5"}, "gcloud": {"machine-type", "e2-highcpu-32"}, "eksctl": {"instance-type", "p5.48xlarge"},
	} {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			k := killer{t: t, recipe: r, state: state}
			k.prepare()
			k.cluster.Input.With[machine[0]] = machine[1]
			shortages := 0
			for range maxCalls {
				outcome := k.createOutcome()
				if outcome == recipe.Done {
					break
				}
				if shortages++; outcome != recipe.NoRoom {
					t.Fatalf("the outcome is %s:\n%s", outcome, k.log.String())
				}
			}
			if shortages == 0 || shortages > 3 {
				t.Errorf("create reported %d times that there is no room:\n%s", shortages, k.log.String())
			}
			k.checkCreated()
			k.call(recipe.Destroy)
			k.checkNothingLeft()
		})
	}
}

func TestWrongCredentialsAreWrongRequests(t *testing.T) {
	for _, name := range []string{"az-aks", "gcloud", "eksctl"} {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			k := killer{t: t, recipe: r, state: state}
			k.prepare()
			for file, content := range secretFiles[name] {
				wrong := strings.ReplaceAll(content, standinSecret, "wrong")
				if err := os.WriteFile(k.cluster.Secrets+"/"+file, []byte(wrong), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, verb := range []recipe.Verb{recipe.Create, recipe.Destroy} {
				_, err := k.cluster.Call(t.Context(), verb)
				var failed *recipe.VerbError
				if !errors.As(err, &failed) || failed.Outcome != recipe.Invalid {
					t.Errorf("%s: %v\n%s", verb, err, k.log.String())
				}
			}
		})
	}
}
