package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// componentInput is an input of the component of GitLab, and taskValue what Tekton replaces in the Task.
var (
	componentInput = regexp.MustCompile(`\$\[\[ inputs\.([a-z-]+) \]\]`)
	taskValue      = regexp.MustCompile(`\$\(((?:params|workspaces|context)\.[a-zA-Z.-]+)\)`)
)

// gitlabJob is what the tests read of a job of GitLab.
type gitlabJob struct {
	Variables    map[string]string `json:"variables"`
	BeforeScript []string          `json:"before_script"`
	AfterScript  []string          `json:"after_script"`
}

// readComponent returns the job of the component with inputs, as GitLab does.
func readComponent(t *testing.T, inputs map[string]string) gitlabJob {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repositoryRoot, "templates", "cluster.yml"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(raw), "\n---\n")
	var header struct {
		Spec struct {
			Inputs map[string]struct {
				Default string `json:"default"`
			} `json:"inputs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	body = componentInput.ReplaceAllStringFunc(body, func(text string) string {
		name := componentInput.FindStringSubmatch(text)[1]
		if value, found := inputs[name]; found {
			return value
		}
		return header.Spec.Inputs[name].Default
	})
	var jobs map[string]gitlabJob
	if err := yaml.Unmarshal([]byte(body), &jobs); err != nil {
		t.Fatal(err)
	}
	return jobs[".hotspare-cluster"]
}

// startGitLabJob starts a job with that ID and script that extends the job of the component: a shell runs before_script and
// script, and another one after_script.
func (h *hub) startGitLabJob(t *testing.T, id, script string, inputs map[string]string) *job {
	t.Helper()
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	claims := common.issuer.claimsOf("acme/shop", tokenAudience, time.Now())
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	token, err := common.issuer.sign(common.issuer.key, claims)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t)
	write(t, filepath.Join(j.dir, "ca.crt"), string(config.CAData), 0o600)
	inputs["hub"], inputs["certificate-authority"], inputs["heartbeat-timeout"] = h.url, "ca.crt", "1m"
	component := readComponent(t, inputs)
	env := append(j.environment(), "CI_JOB_ID="+id, "CI_PROJECT_DIR="+filepath.Join(j.dir, "shop"), "HUB_TOKEN="+token)
	variables := map[string]string{"CI_JOB_ID": id, "CI_PROJECT_DIR": filepath.Join(j.dir, "shop")}
	for name, value := range component.Variables {
		env = append(env, name+"="+os.Expand(value, func(name string) string { return variables[name] }))
	}
	write(t, filepath.Join(j.dir, "script.sh"), "set -eo pipefail\n"+strings.Join(component.BeforeScript, "\n")+"\n"+script+"\n", 0o600)
	write(t, filepath.Join(j.dir, "after.sh"), "set -eo pipefail\n"+strings.Join(component.AfterScript, "\n")+"\n", 0o600)
	j.start(t, env, "bash", "-c", "bash script.sh; code=$?; bash after.sh; exit $code")
	return j
}

// A job of GitLab that extends the component gets a cluster and releases it at its end. If its runner dies, hotspare releases it.
func TestAJobOfGitLabGetsACluster(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	h.allowClaims(t, ns, "github:acme/shop")
	const script = `grep -c server: "$KUBECONFIG" | sed "s/^/servers: /"`

	ended := h.startGitLabJob(t, "41", script+"; exit 7", map[string]string{"pool": pool.Name, "namespace": ns})
	err := ended.runner.Wait()
	if ended.runner.ProcessState.ExitCode() != 7 || !strings.Contains(ended.output.String(), "servers: 1\n") {
		t.Errorf("%v:\n%s", err, &ended.output)
	}
	h.gone(t, &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gitlab-41"}})
	if left, err := filepath.Glob(filepath.Join(ended.dir, "shop.hotspare", "kubeconfig*")); err != nil || len(left) > 0 {
		t.Errorf("the job has left %v, %v", left, err)
	}

	lost := h.startGitLabJob(t, "42", script+"; sleep 1000", map[string]string{"pool": pool.Name, "namespace": ns})
	lost.saw(t, "servers: 1\n")
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gitlab-42"}}
	get(t, h, claim)
	killed := time.Now()
	lost.kill(t)
	idle(func() {
		h.gone(t, claim)
		t.Logf("the claim is gone %s after the runner", time.Since(killed).Round(time.Second))
	})
}

// The Task of Tekton runs a script with a cluster, ends as the script does, and releases the cluster.
func TestATaskOfTektonRunsAScriptWithACluster(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	raw, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "ci", "task.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var task struct {
		Spec struct {
			Params []struct{ Name, Default string } `json:"params"`
			Steps  []struct {
				Env    []struct{ Name, Value string } `json:"env"`
				Script string                         `json:"script"`
			} `json:"steps"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &task); err != nil {
		t.Fatal(err)
	}
	j := newJob(t)
	values := map[string]string{"context.taskRun.name": "run-1", "context.task.retry-count": "0", "workspaces.hub.path": h.dir}
	for _, p := range task.Spec.Params {
		values["params."+p.Name] = p.Default
	}
	values["params.pool"], values["params.namespace"] = pool.Name, ns
	values["params.script"] = "#!/bin/sh\n# $$ is no dollar\ngrep -c server: \"$KUBECONFIG\" | sed \"s/^/servers: /\"\nexit 7"
	replace := func(text string) string {
		return taskValue.ReplaceAllStringFunc(text, func(text string) string { return values[taskValue.FindStringSubmatch(text)[1]] })
	}
	step := task.Spec.Steps[0]
	env := j.environment()
	for _, v := range step.Env {
		env = append(env, v.Name+"="+replace(v.Value))
	}
	write(t, filepath.Join(j.dir, "step"), replace(step.Script), 0o700)
	j.start(t, append(env, "CLUSTER_FOLDER="+j.dir), filepath.Join(j.dir, "step"))
	err = j.runner.Wait()
	if j.runner.ProcessState.ExitCode() != 7 || !strings.Contains(j.output.String(), "servers: 1\n") {
		t.Errorf("%v:\n%s", err, &j.output)
	}
	h.gone(t, &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "run-1"}})
	if _, err := os.Stat(filepath.Join(j.dir, "kubeconfig")); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig of the cluster is left: %v", err)
	}
}
