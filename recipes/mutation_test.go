package recipes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutation is a fault in a program of a recipe: the first Old becomes New.
type mutation struct{ Recipe, Program, Old, New string }

// mutationVariable is the environment variable with the mutation under which this test binary runs.
const mutationVariable = "RECIPES_MUTATION"

// mutateProgram applies the mutation of this process to the recipe in dir.
func mutateProgram(t *testing.T, dir string) {
	t.Helper()
	raw := os.Getenv(mutationVariable)
	if raw == "" {
		return
	}
	var m mutation
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	if m.Recipe != filepath.Base(dir) {
		return
	}
	path := filepath.Join(dir, m.Program)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), m.Old) {
		t.Fatalf("mutation of %s: %q is not in it: %v", path, m.Old, err)
	}
	changed := strings.Replace(string(content), m.Old, m.New, 1)
	if err := os.WriteFile(path, []byte(changed), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

// otherTests returns the other tests of a recipe.
func otherTests(name string) string {
	tests := []string{
		"TestImagesAndLogs/^" + name + "$", "TestCreateSaysWhoseFaultItIs/^" + name + ",", "TestCreateBeginsAgain/^" + name + "$",
		"TestWrongCredentials/^" + name + "$",
	}
	switch name {
	case "terraform":
		tests = append(tests, "TestTerraform")
	case "minikube":
		tests = append(tests, "TestMinikube")
	case "eksctl":
		tests = append(tests, "TestEksctl")
	case "talosctl":
		tests = append(tests, "TestTalosctl")
	}
	return strings.Join(tests, "|")
}

// mutations are faults that the tests of the recipes must find.
var mutations = []mutation{
	{`kind`, `create`, `[ ! -e complete ] || exit 0`, `:`},
	{`kind`, `destroy`, `rm -f complete`, `:`},
	{`kind`, `destroy`, `rm -f "$KUBECONFIG.lock"`, `:`},
	{`kind`, `create`, "KIND_EXPERIMENTAL_PROVIDER=docker kind delete cluster --name \"$HOTSPARE_INFRA_ID\"\n", ":\n"},
	{`kind`, `create`, `'manifest unknown|`, `'manifest known|`},
	{`kind`, `stop`, `--all `, ``},
	{`kind`, `observe`, `state["exited"] = state["created"] = "Stopped"`, `state["exited"] = state["created"] = "Running"`},
	{`k3d`, `create`, `[ ! -e complete ] || exit 0`, `:`},
	{`k3d`, `destroy`, `docker network ls`, `: docker network ls`},
	{`k3d`, `destroy`, `docker volume ls`, `: docker volume ls`},
	{`k3d`, `start`, `docker ps`, `: docker ps`},
	{`k3d`, `create`, `no space left on device|`, ``},
	{`k3d`, `prepare`, `%.18s`, `%.36s`},
	{`minikube`, `create`, `[ ! -e complete ] || exit 0`, `:`},
	{`minikube`, `start`, `rm starting`, `:`},
	{`minikube`, `start`, `touch starting`, `:`},
	{`minikube`, `observe`, ` && !starting`, ``},
	{`minikube`, `observe`, `&& $2 == "Running" `, `&& $2 != "" `},
	{`minikube`, `destroy`, `complete starting`, `complete`},
	{`minikube`, `environment`, `*) exit 1 ;;`, `*) exit $? ;;`},
	{`minikube`, `environment`, `23 | 26 | 29) exit 30 ;;`, ``},
	{`vcluster`, `create`, "\"$HOTSPARE_RECIPE_DIR/destroy\"\n", ":\n"},
	{`vcluster`, `stop`, `host delete pods`, `: host delete pods`},
	{`vcluster`, `destroy`, `host delete clusterrole`, `: host delete clusterrole`},
	{`vcluster`, `observe`, `pods ? "Failed" : `, ``},
	{`vcluster`, `start`, `[ -z "$paused" ] || `, ``},
	{`talosctl`, `create`, "\"$HOTSPARE_RECIPE_DIR/destroy\"\n", ":\n"},
	{`talosctl`, `destroy`, `rm -rf complete talos`, `rm -rf talos`},
	{`talosctl`, `destroy`, `"$KUBECONFIG" "$KUBECONFIG.lock"`, ``},
	{`talosctl`, `create`, `*) false ;; esac; do`, `*) true ;; esac; do`},
	{`talosctl`, `create`, `used=" $(docker network ls`, `used=" $(true docker network ls`},
	{`hotspare-local`, `create`, `hub kubectl wait`, `: hub kubectl wait`},
	{`hotspare-local`, `destroy`, `--ignore-not-found `, ``},
	{`hotspare-local`, `observe`, `i <= $4`, `i <= $3`},
	{`az-aks`, `destroy`, `[ -n "$state" ] || exit 0`, ``},
	{`az-aks`, `create`, `&& az aks delete "$@" --yes --no-wait --output none `, ``},
	{`az-aks`, `environment`, `AllocationFailed|`, ``},
	{`az-aks`, `environment`, `rm -rf "$AZURE_CONFIG_DIR" `, `rm -rf `},
	{`az-aks`, `stop`, `*Stopped*Succeeded) exit 0 ;;`, ``},
	{`gcloud`, `destroy`, `[ -z "$disks" ] || `, `[ -n "$disks" ] || `},
	{`gcloud`, `create`, `&& gcloud container clusters delete "$@" --async >&2 `, ``},
	{`gcloud`, `environment`, `|not have enough resources`, ``},
	{`gcloud`, `create`, `if grep -q 'token: .' kubeconfig; then exit 0; fi`, `exit 0`},
	{`eksctl`, `create`, `{ "$HOTSPARE_RECIPE_DIR/destroy" || true; } && `, ``},
	{`eksctl`, `destroy`, `*) echo "$stacks" | while read`, `*) true | while read`},
	{`eksctl`, `create`, `call_eksctl create addon --config-file cluster.yaml && `, ``},
	{`eksctl`, `environment`, `Insufficient.*Capacity|`, ``},
	{`kubeadm-ssh`, `host`, `reset-*) kubeadm reset --force && `, `reset-*) `},
	{`kubeadm-ssh`, `host`, `[ "$owner" = "$id" ] ||`, `[ "$owner" != "" ] ||`},
	{`kubeadm-ssh`, `host`, `&& crictl ps --quiet | xargs --no-run-if-empty crictl stop`, ``},
	{`kubeadm-ssh`, `create`, ` && on_all reset >&2`, ``},
	{`kubeadm-ssh`, `environment`, `(umask 077 && cat`, `(umask 022 && cat`},
	{`terraform`, `environment`, `[ -e terraform.tfstate ] || [ ! -e "$copy" ] || cp "$copy" terraform.tfstate`, `:`},
	{`terraform`, `destroy`, `rm -rf "$copy" "$TF_DATA_DIR" terraform.tfstate`, `:`},
	{`terraform`, `environment`, `cmp -s main.tf "$TF_DATA_DIR/main.tf" ||`, `[ -e "$TF_DATA_DIR" ] ||`},
	{`terraform`, `observe`, `false) state=Stopped`, `false) state=Running`},
	{`terraform`, `environment`, `Unsupported (argument|attribute)|Missing required argument|`, ``},
}

// TestFaultsInTheRecipesAreFound runs the tests of a recipe with one fault in it at a time. They must fail,
// and not because the fault could not be applied.
func TestFaultsInTheRecipesAreFound(t *testing.T) {
	if !*exhaustive || os.Getenv(mutationVariable) != "" {
		t.Skip("takes minutes: run make test-recipes")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := findProgram()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.Recipe+" "+m.Program+" "+m.Old, func(t *testing.T) {
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			kills := "TestEachStepMayBeKilled/^" + m.Recipe + "$"
			for _, args := range [][]string{
				{"-test.run", kills},
				{"-test.run", otherTests(m.Recipe)},
				{"-test.run", "TestShippedRecipes/^" + m.Recipe + "$"},
				{"-test.run", kills, "-recipes.exhaustive"},
			} {
				cmd := exec.CommandContext(t.Context(), binary, append(args, "-test.failfast")...) //nolint:gosec // this test binary
				cmd.Env = append(os.Environ(), mutationVariable+"="+string(raw), programVariable+"="+program)
				out, err := cmd.CombinedOutput()
				if strings.Contains(string(out), "is not in it") {
					t.Fatalf("%s", out)
				}
				if err != nil {
					t.Logf("found by %s", strings.Join(args, " "))
					return
				}
			}
			t.Errorf("%s of %s, with %q instead of %q, passes all tests", m.Program, m.Recipe, m.New, m.Old)
		})
	}
}
