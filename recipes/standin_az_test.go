package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The stand-in for the Azure CLI 2.85 (2026), for the commands that the recipe az-aks uses. Sources:
// learn.microsoft.com/cli/azure/aks, learn.microsoft.com/azure/aks/start-stop-cluster, and
// command_modules/acs of the CLI. Exit codes: 2 wrong arguments, 3 not found, 1 other errors.

func init() {
	registerTool("az", runAz)
	registerParameters("az-aks", map[string]string{"resource-group": "spares", "nodes": "3", "location": "westeurope", "kubernetes-version": "1.35"})
	servers["az-aks"] = func(_ toolCall, infraID string) string { return "https://" + infraID + ".hcp.westeurope.azmk8s.io:443" }
	registerSecrets("az-aks", map[string]string{"client-id": "3f2c", "tenant-id": "9a1b", "client-secret": standinSecret})
}

// azVCPUQuota is the vCPU quota of the stand-in's subscription.
const azVCPUQuota = 20

var azSizes = map[string]int{"Standard_D2s_v5": 2, "Standard_D4s_v5": 4, "Standard_D8s_v5": 2}

func runAz(t toolCall) int {
	if err := t.rejectSecrets(); err != nil {
		return t.fail(99, "ERROR: %v", err)
	}
	if len(t.Args) > 0 && t.Args[0] == "login" {
		return azLogin(t, t.Args[1:])
	}
	if len(t.Args) < 2 || t.Args[0] != "aks" {
		return t.fail(2, "ERROR: '%s' is misspelled or not recognized by the system.", strings.Join(t.Args, " "))
	}
	name := []string{"--name!", "--resource-group!", "--subscription", "--output"}
	command, ok := map[string]struct {
		spec []string
		run  func(toolCall, arguments) int
	}{
		"list": {[]string{"--resource-group", "--subscription", "--query", "--output"}, azList},
		"show": {append(name, "--query"), azShow},
		"create": {append(name, "--node-resource-group", "--tags", "--tier", "--node-count", "--node-vm-size", "--location",
			"--kubernetes-version", "--no-ssh-key?", "--generate-ssh-keys?", "--no-wait?", "--yes?"), azCreate},
		"delete":          {append(name, "--yes?", "--no-wait?"), azDelete},
		"start":           {append(name, "--no-wait?"), azStart},
		"stop":            {append(name, "--no-wait?"), azStop},
		"get-credentials": {append(name, "--admin?", "--file", "--overwrite-existing?"), azGetCredentials},
	}[t.Args[1]]
	if !ok {
		return t.fail(2, "ERROR: '%s' is misspelled or not recognized by the system.", t.Args[1])
	}
	a, err := parseArguments(t.Args[2:], command.spec...)
	if err != nil || len(a.rest) > 0 {
		return t.fail(2, "ERROR: %v %v", err, a.rest)
	}
	if _, err := os.Stat(azProfile(t)); err != nil {
		return t.fail(1, "ERROR: Please run 'az login' to setup account.")
	}
	if group := a.flags["--resource-group"]; group != "spares" {
		return t.fail(3, "ERROR: (ResourceGroupNotFound) Resource group '%s' could not be found.", group)
	}
	t.step()
	t.advanceOperations("aks", nil)
	return command.run(t, a)
}

// azProfile is the file with the signed-in account.
func azProfile(t toolCall) string {
	dir := t.Getenv("AZURE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(t.Getenv("HOME"), ".azure")
	}
	return filepath.Join(dir, "azureProfile.json")
}

func azLogin(t toolCall, args []string) int {
	a, err := parseArguments(args, "--service-principal?", "--username!", "--tenant!", "--password", "--certificate", "--output")
	if err != nil || len(a.rest) > 0 || !a.has("--service-principal") || a.has("--password") == a.has("--certificate") {
		return t.fail(2, "ERROR: %v: %v", err, a)
	}
	// The CLI replaces a value that begins with @ by the content of that file.
	for flag, value := range a.flags {
		if path, ok := strings.CutPrefix(value, "@"); ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				return t.fail(1, "ERROR: Failed to open file '%s'", path)
			}
			a.flags[flag] = strings.TrimRight(string(raw), "\r\n")
		}
	}
	t.step()
	credential := a.flags["--password"]
	if path := a.flags["--certificate"]; path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return t.fail(1, "ERROR: [Errno 2] No such file or directory: '%s'", path)
		}
		credential = string(raw)
	}
	if a.flags["--username"] != "3f2c" || a.flags["--tenant"] != "9a1b" || !strings.Contains(credential, standinSecret) {
		return t.fail(1, "ERROR: AADSTS7000215: Invalid client secret provided.")
	}
	if err := os.MkdirAll(filepath.Dir(azProfile(t)), 0o700); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	if err := os.WriteFile(azProfile(t), []byte(standinSecret), 0o600); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	return 0
}

// azList answers the one query of the recipe. A test of it against JMESPath is not part of this package.
func azList(t toolCall, a arguments) int {
	const columns = "powerState.code,provisioningState"
	name := strings.TrimPrefix(strings.SplitAfterN(a.flags["--query"]+"''", "'", 3)[1], "'")
	name = strings.TrimSuffix(name, "'")
	want := fmt.Sprintf("[?name=='%s'].[[['control-plane',%s]], agentPoolProfiles[].[name,%s]] | [] | []", name, columns, columns)
	if a.flags["--query"] != want || a.flags["--output"] != "tsv" {
		return t.fail(2, "ERROR: argument --query: the stand-in does not know %q", a.flags["--query"])
	}
	if r, ok := t.resource("aks", name); ok {
		fmt.Fprintf(t.Stdout, "control-plane\t%s\t%s\nnodepool1\t%s\t%s\n", r.Fields["power"], r.State, r.Fields["power"], r.State)
	}
	return 0
}

// find returns the cluster that a command names.
func (a arguments) findAKS(t toolCall) (resource, int) {
	r, ok := t.resource("aks", a.flags["--name"])
	if !ok {
		return r, t.fail(3, "ERROR: (ResourceNotFound) The Resource 'Microsoft.ContainerService/managedClusters/%s' was not found.", a.flags["--name"])
	}
	return r, 0
}

func azShow(t toolCall, a arguments) int {
	r, code := a.findAKS(t)
	if code != 0 {
		return code
	}
	answer := map[string]any{"power": r.Fields["power"], "state": r.State}
	if a.flags["--query"] == "status.provisioningError" {
		answer = map[string]any{"code": r.Fields["error"], "message": "the operation failed"}
	}
	if err := json.NewEncoder(t.Stdout).Encode(answer); err != nil {
		return t.fail(1, "ERROR: %v", err)
	}
	return 0
}

func azCreate(t toolCall, a arguments) int {
	name := a.flags["--name"]
	nodes, err := strconv.Atoi(a.flags["--node-count"])
	size, known := azSizes[a.flags["--node-vm-size"]]
	used := 0
	for _, r := range t.resources("aks") {
		n, _ := strconv.Atoi(r.Fields["vcpus"])
		used += n
	}
	_, exists := t.resource("aks", name)
	switch {
	case err != nil:
		return t.fail(2, "ERROR: argument --node-count: invalid int value")
	case len(name) > 63 || len(a.flags["--node-resource-group"]) > 80:
		return t.fail(1, "ERROR: (InvalidParameter) The value of parameter name is invalid.")
	case !a.has("--no-ssh-key") && !a.has("--generate-ssh-keys"):
		return t.fail(1, "ERROR: An RSA key file or key value must be supplied to SSH Key Value.")
	case !known:
		return t.fail(1, "ERROR: (BadRequest) The VM size of %s is not allowed in your subscription in location 'westeurope'.", a.flags["--node-vm-size"])
	case used+nodes*size > azVCPUQuota:
		return t.fail(1, "ERROR: (ErrCode_InsufficientVCPUQuota) Insufficient vcpu quota requested %d, remaining %d", nodes*size, azVCPUQuota-used)
	case exists:
		return t.fail(1, "ERROR: The cluster '%s' under resource group 'spares' already exists.", name)
	case !a.has("--no-wait"):
		return t.fail(1, "ERROR: the stand-in does not wait")
	}
	r := resource{Kind: "aks", Name: name, Fields: map[string]string{"power": "Running", "vcpus": strconv.Itoa(nodes * size), "tags": a.flags["--tags"]}}
	r.operate("Creating", "Succeeded")
	if t.isShort(name, a.flags["--node-vm-size"] == "Standard_D8s_v5") {
		r.Next, r.Fields["error"] = "Failed", "AllocationFailed"
	}
	t.saveResource(r)
	t.step()
	return 0
}

func azDelete(t toolCall, a arguments) int {
	r, code := a.findAKS(t)
	switch {
	case code != 0:
		return code
	case !a.has("--yes"):
		return t.fail(1, "ERROR: Unable to prompt for confirmation as no tty available. Use --yes.")
	case r.Remaining > 0:
		return t.fail(1, "ERROR: (OperationNotAllowed) Operation is not allowed: Another %s operation is in progress", r.State)
	}
	r.operate("Deleting", "")
	t.saveResource(r)
	t.step()
	return 0
}

func azStart(t toolCall, a arguments) int { return azPower(t, a, "Starting", "Running") }

func azStop(t toolCall, a arguments) int { return azPower(t, a, "Stopping", "Stopped") }

// azPower changes the power state as soon as the operation begins, as AKS does.
func azPower(t toolCall, a arguments, operation, power string) int {
	r, code := a.findAKS(t)
	switch {
	case code != 0:
		return code
	case r.Remaining > 0:
		return t.fail(1, "ERROR: (OperationNotAllowed) Operation is not allowed: Another %s operation is in progress", r.State)
	case r.Fields["power"] == power && r.State == "Succeeded":
		return t.fail(1, "ERROR: (BadRequest) The cluster is already %s", power)
	}
	r.Fields["power"] = power
	r.operate(operation, "Succeeded")
	t.saveResource(r)
	t.step()
	return 0
}

func azGetCredentials(t toolCall, a arguments) int {
	r, code := a.findAKS(t)
	switch {
	case code != 0:
		return code
	case r.State == "Creating":
		return t.fail(1, "ERROR: (NotReady) The cluster %s is not ready", r.Name)
	case a.flags["--file"] != "-":
		return t.fail(2, "ERROR: argument --file: the stand-in prints only")
	}
	credential := "{token: none}"
	if a.has("--admin") {
		credential = "{client-certificate-data: c3RhbmQtaW4=, client-key-data: c3RhbmQtaW4=}"
	}
	fmt.Fprint(t.Stdout, kubeconfigText(r.Name, "https://"+r.Name+".hcp.westeurope.azmk8s.io:443", credential))
	return 0
}
