package recipes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/recipe"
)

// The stand-in for Terraform v1.11 and OpenTofu v1.10, for the commands of the recipe terraform.
// Sources: developer.hashicorp.com/terraform/cli/commands, and Terraform itself, with which
// TestTerraformItself runs the recipe where it is installed.
//
// The stand-in knows one module, /modules/cluster: two machines and a network. It records each resource
// at the moment in which it creates it. Terraform cannot: a resource of a cloud whose creation is
// under way when Terraform is killed is not in the state.

func init() {
	registerTool("terraform", runTerraform)
	registerRecipeTool("terraform", "tofu", runTerraform) // not in needs.programs
	registerParameters("terraform", map[string]string{"source": "/modules/cluster", "variables": "region = \"eu-west-1\"\ntoken = file(\"${var.secrets}/token\")"})
	servers["terraform"] = func(_ toolCall, infraID string) string { return "https://" + infraID + ".invalid" }
	registerSecrets("terraform", map[string]string{"token": standinSecret})
}

// terraformModule is what the stand-in reads of the root module.
var terraformModule = regexp.MustCompile(`(?s)^terraform \{\s+backend "(\w+)" \{\s*(.*?)\s*\}\s+\}\s+variable "secrets" \{\}\s+variable "running" \{ type = bool \}\s+` +
	`module "cluster" \{\s+source = "([^"]+)"\s+(?:version = "([^"]+)"\s+)?(\w+) = "([a-z0-9-]+)"\s*(.*?)\s*\}\s+` +
	`output "kubeconfig" \{\s+value     = module\.cluster\.(\w+)\s+sensitive = true\s+\}\s+` +
	`output "running" \{\s+value      = var\.running\s+depends_on = \[module\.cluster\]\s+\}\s*$`)

type terraformState struct {
	Name      string
	Resources []string
	Output    string
	// Running is the output of that name; empty before the first apply has ended.
	Running string
	path    string
}

func runTerraform(t toolCall) int {
	if err := t.rejectSecrets(); err != nil {
		return t.fail(99, "%v", err)
	}
	var names []string
	flags := map[string]string{}
	for i, argument := range t.Args {
		if i > 0 && t.Args[i-1] == "-var" {
			flags["-var"] = argument
			continue
		}
		if name, value, _ := strings.Cut(argument, "="); strings.HasPrefix(argument, "-") {
			flags[name] = value
			continue
		}
		names = append(names, argument)
	}
	command := strings.Join(names, " ")
	allowed, ok := map[string][]string{
		"init": {"-no-color", "-reconfigure"}, "apply": {"-auto-approve", "-no-color", "-lock", "-var"}, "destroy": {"-auto-approve", "-no-color", "-lock"},
		"output kubeconfig": {"-raw"}, "output running": {"-raw"}, "state list": nil,
	}[command]
	if !ok {
		return t.fail(1, "Terraform has no command named %q.", command)
	}
	for name := range flags {
		if !slices.Contains(allowed, name) {
			return t.fail(1, "Error parsing command-line flags: flag provided but not defined: %s", name)
		}
	}
	t.step()
	raw, err := os.ReadFile("main.tf")
	module := terraformModule.FindStringSubmatch(string(raw))
	if err != nil || module == nil || module[5] != "name" || module[8] != "kubeconfig" {
		return t.fail(1, "Error: Unsupported argument\n%v", err)
	}
	data := filepath.Join(t.Getenv("TF_DATA_DIR"), "terraform.tfstate")
	if command == "init" {
		return t.terraformInit(module, data)
	}
	if backend, err := os.ReadFile(data); err != nil || string(backend) != module[1]+module[2] {
		return t.fail(1, "Error: Backend initialization required, please run \"terraform init\"")
	}
	state, found := t.readTerraformState(module)
	switch command {
	case "apply":
		return t.terraformApply(module, state, flags["-var"] != "running=false")
	case "output running":
		if state.Running == "" {
			return t.fail(1, "Error: Output \"running\" not found")
		}
		fmt.Fprint(t.Stdout, state.Running)
		return 0
	case "destroy":
		return t.terraformDestroy(state)
	case "state list":
		if !found {
			return t.fail(1, "No state file was found!")
		}
		for _, r := range state.Resources {
			fmt.Fprintln(t.Stdout, "module.cluster.stand_in."+r)
		}
		return 0
	}
	if state.Output == "" {
		return t.fail(1, "Error: Output \"kubeconfig\" not found")
	}
	fmt.Fprint(t.Stdout, state.Output)
	return 0
}

func (t toolCall) terraformInit(module []string, data string) int {
	if module[3] != "/modules/cluster" {
		return t.fail(1, "Error: Failed to download module\nerror downloading %q", module[3])
	}
	t.step()
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return t.fail(1, "Error: %v", err)
	}
	t.step()
	if err := os.WriteFile(data, []byte(module[1]+module[2]), 0o600); err != nil {
		return t.fail(1, "Error: %v", err)
	}
	return 0
}

// readTerraformState reads the state: a file in the working folder, or an object in a bucket.
func (t toolCall) readTerraformState(module []string) (*terraformState, bool) {
	s := &terraformState{Name: module[6], path: "terraform.tfstate"}
	if module[1] != "local" {
		_, key, _ := strings.Cut(module[2], `key = "`)
		key, _, _ = strings.Cut(key, `"`)
		s.path = t.path("buckets", key)
	}
	raw, err := os.ReadFile(s.path)
	if err != nil {
		return s, false
	}
	if err := json.Unmarshal(raw, s); err != nil {
		panic(err)
	}
	return s, true
}

func (s *terraformState) write() {
	raw, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(s.path+"~", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path+"~", s.path)
	}
	if err != nil {
		panic(err)
	}
}

func (t toolCall) terraformApply(module []string, s *terraformState, running bool) int {
	if module[7] == "" || !strings.Contains(module[7], `region = "eu-west-1"`) {
		return t.fail(1, "Error: Missing required argument\nThe argument \"region\" is required")
	}
	if token, err := os.ReadFile(filepath.Join(t.Getenv("TF_VAR_secrets"), "token")); err != nil || string(token) != standinSecret {
		return t.fail(1, "Error: Invalid function argument\nno file exists at token: %v", err)
	}
	if t.Getenv("TF_VAR_running") != "true" {
		return t.fail(1, "Error: No value for required variable\nThe root module input variable \"running\" is not set")
	}
	if !running { // the module has no machines then
		for _, kind := range []string{"machine-1", "machine-0"} {
			t.step()
			t.remove("resources", s.Name, kind)
			s.Resources = slices.DeleteFunc(s.Resources, func(r string) bool { return r == kind })
			s.write()
		}
		t.step()
		s.Running = "false"
		s.write()
		return 0
	}
	for _, kind := range []string{"network", "machine-0", "machine-1"} {
		if slices.Contains(s.Resources, kind) {
			continue
		}
		t.step()
		if _, exists := t.read("resources", s.Name, kind); exists {
			return t.fail(1, "Error: creating %s of %s: it exists", kind, s.Name)
		}
		t.write("", "resources", s.Name, kind)
		s.Resources = append(s.Resources, kind)
		s.write()
	}
	t.step()
	s.Output = kubeconfigText(s.Name, "https://"+s.Name+".invalid", "{token: stand-in}")
	s.Running = "true"
	s.write()
	fmt.Fprintln(t.Stdout, "kubeconfig = <sensitive>")
	return 0
}

func (t toolCall) terraformDestroy(s *terraformState) int {
	for len(s.Resources) > 0 {
		t.step()
		last := len(s.Resources) - 1
		t.remove("resources", s.Name, s.Resources[last])
		s.Resources = s.Resources[:last]
		s.write()
	}
	s.Output, s.Running = "", ""
	s.write()
	return 0
}

// terraformSuite runs the conformance suite on the recipe terraform and returns the checks.
func terraformSuite(t *testing.T, r *recipe.Recipe, with map[string]string) []recipe.Check {
	t.Helper()
	seed := rand.Uint64()
	var log strings.Builder
	s := &recipe.Suite{
		Recipe: r, With: with, Dir: t.TempDir(), Secrets: writeSecrets(t, "terraform"), Log: &log, Random: rand.New(rand.NewPCG(seed, 0)),
		Pause: time.Millisecond, Patience: time.Minute, KillWithin: 500 * time.Millisecond,
	}
	checks := s.Run(t.Context())
	t.Logf("seed %d\n%s", seed, recipe.Table(checks))
	for _, c := range checks {
		if c.State == recipe.CheckFailed {
			t.Errorf("%s: %s\n%s", c.Name, c.Detail, log.String())
		}
	}
	return checks
}

func TestTerraformStateInABucketSurvivesTheLossOfAllFolders(t *testing.T) {
	r, state := loadShipped(t, "terraform")
	with := map[string]string{
		"source": "/modules/cluster", "variables": parameters["terraform"]["variables"], "tool": "tofu",
		"backend": "s3", "backend-config": "bucket = \"b\"\nkey = \"hotspare/INFRA_ID.tfstate\"",
	}
	if *exhaustive {
		terraformSuite(t, r, with)
	}
	if left := listResources(t, state, os.Getenv("HOME")); len(left) > 0 {
		t.Errorf("left over are %v", left)
	}

	c := recipe.Cluster{Recipe: r, Dir: t.TempDir(), Secrets: writeSecrets(t, "terraform")}
	c.Input = recipe.Input{Name: "lost", UID: "1", InfraID: "lost-12345", With: complete(t, r, with)}
	if again, err := c.Call(t.Context(), recipe.Create); again || err != nil {
		t.Fatal(again, err)
	}
	t.Setenv("HOME", t.TempDir())
	c.Dir = t.TempDir()
	if again, err := c.Call(t.Context(), recipe.Destroy); again || err != nil {
		t.Fatal(again, err)
	}
	if left := listResources(t, state); len(left) > 0 {
		t.Errorf("left over are %v", left)
	}
}

// listResources returns what is left over, except the states in buckets: Terraform leaves empty ones.
func listResources(t *testing.T, folders ...string) []string {
	t.Helper()
	return slices.DeleteFunc(listLeftovers(t, folders...), func(path string) bool { return strings.Contains(path, "/buckets/") })
}

func complete(t *testing.T, r *recipe.Recipe, with map[string]string) map[string]string {
	t.Helper()
	out, err := r.Parameters.Complete(with)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// terraformTestModule creates files as machines. Its first resource removes all files with its name, so
// that it also removes those whose creation Terraform was killed in.
const terraformTestModule = `
variable "name" {}
variable "world" {}
resource "terraform_data" "sweep" {
  input = "${var.world}/${var.name}"
  provisioner "local-exec" {
    when    = destroy
    command = "rm -f ${self.input}-*"
  }
}
resource "terraform_data" "machine" {
  count      = 3
  depends_on = [terraform_data.sweep]
  input      = "${terraform_data.sweep.output}-${count.index}"
  provisioner "local-exec" {
    command = "sleep 0.05; touch ${self.input}"
  }
}
output "kubeconfig" {
  value     = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}]\n"
  sensitive = true
}
`

func TestTerraformItself(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil || !*exhaustive {
		t.Skip("terraform is not installed, or -recipes.exhaustive is not set")
	}
	r, _ := loadShipped(t, "terraform")
	t.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	module, world := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(module, "main.tf"), []byte(terraformTestModule), 0o600); err != nil {
		t.Fatal(err)
	}
	terraformSuite(t, r, map[string]string{"source": module, "variables": fmt.Sprintf("world = %q", world)})
	if left := listLeftovers(t, world, os.Getenv("HOME")); len(left) > 0 {
		t.Errorf("left over are %v", left)
	}
}
