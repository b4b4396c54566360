package recipes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/template"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// The stand-in for kubectl v1.36, for the commands with which the recipes of clouds create the account
// of hotspare. It authenticates as kubectl does: it runs the plugin that the kubeconfig names.

func init() {
	registerRecipeTool("gcloud", "kubectl", runCloudKubectl)
	registerRecipeTool("eksctl", "kubectl", runCloudKubectl)
}

func runCloudKubectl(t toolCall) int {
	if err := t.rejectSecrets(); err != nil {
		return t.fail(99, "error: %v", err)
	}
	if len(t.Args) == 0 {
		return t.fail(1, "error: a command is required")
	}
	a, err := parseArguments(t.Args[1:], "--filename", "--namespace", "--output", "--minify?")
	if err != nil {
		return t.fail(1, "error: %v", err)
	}
	config, err := clientcmd.LoadFromFile(t.kubeconfigPath(""))
	if err != nil {
		return t.fail(1, "error: %v", err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
		return t.fail(1, "error: current-context is not set")
	}
	server := config.Clusters[context.Cluster].Server
	if command := strings.Join(append(t.Args[:1:1], a.rest...), " "); command == "config view" {
		if !a.has("--minify") || a.flags["--output"] != "jsonpath={.clusters[0].cluster.server}" {
			return t.fail(1, "error: the stand-in does not know %v", t.Args)
		}
		fmt.Fprint(t.Stdout, server)
		return 0
	}
	if err := authenticate(config.AuthInfos[context.AuthInfo]); err != nil {
		return t.fail(1, "error: You must be logged in to the server (%v)", err)
	}
	u, err := url.Parse(server)
	if err != nil {
		return t.fail(1, "error: %v", err)
	}
	cluster, platform, _ := strings.Cut(u.Hostname(), ".")
	if _, exists := t.resource(strings.TrimSuffix(platform, ".invalid"), cluster); !exists {
		return t.fail(1, "Unable to connect to the server: dial tcp: lookup %s: no such host", u.Hostname())
	}
	t.step()
	switch command := strings.Join(append(t.Args[:1:1], a.rest...), " "); {
	case command == "apply":
		return kubectlApply(t, a, cluster)
	case command == "get secret hotspare" && a.flags["--namespace"] == "kube-system":
		return kubectlGetSecret(t, a, cluster)
	}
	return t.fail(1, "error: the stand-in does not know %v", t.Args)
}

// authenticate runs the plugin of a user and checks its answer.
func authenticate(user *clientcmdapi.AuthInfo) error {
	if user.Exec == nil {
		return fmt.Errorf("the kubeconfig has no plugin")
	}
	cmd := exec.Command(user.Exec.Command, user.Exec.Args...) // ends at once
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	var credential struct {
		Kind       string                 `json:"kind"`
		APIVersion string                 `json:"apiVersion"`
		Status     struct{ Token string } `json:"status"`
	}
	if err := json.Unmarshal(answer, &credential); err != nil {
		return err
	}
	if credential.Kind != "ExecCredential" || credential.APIVersion != user.Exec.APIVersion || credential.Status.Token == "" {
		return fmt.Errorf("exec plugin returned %s", answer)
	}
	return nil
}

func kubectlApply(t toolCall, a arguments, cluster string) int {
	raw, err := os.ReadFile(a.flags["--filename"])
	if err != nil {
		return t.fail(1, "error: %v", err)
	}
	var kinds []string
	for _, document := range bytes.Split(raw, []byte("---\n")) {
		var object struct {
			Kind     string         `json:"kind"`
			Metadata map[string]any `json:"metadata"`
			RoleRef  map[string]any `json:"roleRef"`
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			return t.fail(1, "error: %v", err)
		}
		if object.Metadata["name"] != "hotspare" || object.Kind == "ClusterRoleBinding" && object.RoleRef["name"] != "cluster-admin" {
			return t.fail(1, "error: the stand-in does not know %s", document)
		}
		kinds = append(kinds, object.Kind)
		fmt.Fprintf(t.Stdout, "%s/hotspare configured\n", strings.ToLower(object.Kind))
		t.step()
	}
	if !slices.Equal(kinds, []string{"ServiceAccount", "Secret", "ClusterRoleBinding"}) {
		return t.fail(1, "error: the stand-in does not know %v", kinds)
	}
	if _, applied := t.read("tokens", cluster); !applied {
		t.write("", "tokens", cluster)
	}
	return 0
}

// kubectlGetSecret prints the Secret. The token controller has filled it when it is read a second time.
func kubectlGetSecret(t toolCall, a arguments, cluster string) int {
	path, ok := strings.CutPrefix(a.flags["--output"], "go-template-file=")
	text, err := os.ReadFile(path)
	if !ok || err != nil {
		return t.fail(1, "error: reading the template: %v", err)
	}
	token, applied := t.read("tokens", cluster)
	if !applied {
		return t.fail(1, "Error from server (NotFound): secrets %q not found", "hotspare")
	}
	if token == "" {
		t.write("token-of-"+cluster, "tokens", cluster)
	}
	functions := template.FuncMap{"base64decode": func(s string) (string, error) {
		raw, err := base64.StdEncoding.DecodeString(s)
		return string(raw), err
	}}
	parsed, err := template.New("").Funcs(functions).Parse(string(text))
	if err != nil {
		return t.fail(1, "error: %v", err)
	}
	data := map[string]any{}
	if token != "" {
		data = map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token)), "ca.crt": "c3RhbmQtaW4="}
	}
	if err := parsed.Execute(t.Stdout, map[string]any{"data": data}); err != nil {
		return t.fail(1, "error: %v", err)
	}
	return 0
}

// writeExecKubeconfig writes a kubeconfig with a plugin, as `gcloud container clusters get-credentials`
// and `aws eks update-kubeconfig` do. It keeps the other contexts of the file.
func (t toolCall) writeExecKubeconfig(context, server, command string, args ...string) error {
	path := t.kubeconfigPath("")
	config, err := clientcmd.LoadFromFile(path)
	if os.IsNotExist(err) {
		config, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return err
	}
	setContext(config, context, server)
	config.AuthInfos[context] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1beta1", Command: command, Args: args, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}
	return clientcmd.WriteToFile(*config, path)
}

// printExecCredential prints what a plugin prints.
func printExecCredential(w io.Writer) {
	fmt.Fprintln(w, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"short-lived"}}`)
}
