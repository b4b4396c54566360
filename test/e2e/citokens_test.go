package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// action is what the tests read of action.yml.
type action struct {
	Inputs map[string]struct {
		Default  string `json:"default"`
		Required bool   `json:"required"`
	} `json:"inputs"`
	Runs struct {
		Steps []struct {
			Env map[string]string `json:"env"`
			Run string            `json:"run"`
		} `json:"steps"`
	} `json:"runs"`
}

// expression is one of GitHub Actions in action.yml.
var expression = regexp.MustCompile(`\$\{\{ ([a-z._-]+) \}\}`)

// job is one of a CI system.
type job struct {
	// dir is its folder; on GitHub RUNNER_TEMP.
	dir string
	// runner is the process that plays the runner. It runs in a process group of its own, with its children.
	runner *exec.Cmd
	output transcript
}

// startJob runs the action with inputs, as a job of repository, and then sleeps as tests would do.
func (h *hub) startJob(t *testing.T, issuer *tokenIssuer, repository string, inputs map[string]string) *job {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repositoryRoot, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(repositoryRoot)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t)
	step := a.Runs.Steps[0]
	write(t, filepath.Join(j.dir, "step.sh"), step.Run, 0o600)
	env := append(j.environment(), "RUNNER_TEMP="+j.dir,
		"GITHUB_RUN_ID=7", "GITHUB_RUN_ATTEMPT=1", "GITHUB_OUTPUT="+filepath.Join(j.dir, "output"), "GITHUB_ENV="+filepath.Join(j.dir, "env"),
		"ACTIONS_ID_TOKEN_REQUEST_URL="+issuer.api.URL+"/"+repository+"?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN="+jobSecret,
	)
	for name, value := range step.Env {
		env = append(env, name+"="+expression.ReplaceAllStringFunc(value, func(text string) string {
			key := expression.FindStringSubmatch(text)[1]
			if key == "github.action_path" {
				return top
			}
			input := strings.TrimPrefix(key, "inputs.")
			if value, found := inputs[input]; found {
				return value
			}
			return a.Inputs[input].Default
		}))
	}
	j.start(t, env, "bash", "-c", "bash --noprofile --norc -eo pipefail step.sh && echo the step has ended && sleep 1000")
	return j
}

// newJob returns a job that is not started. Its folder has kubectl and, if this machine lacks it, curl.
func newJob(t *testing.T) *job {
	t.Helper()
	j := &job{dir: t.TempDir()}
	bin := filepath.Join(j.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "kubectl"), "#!/bin/sh\nexec '"+binary+"' kubectl \"$@\"\n", 0o700)
	if _, err := exec.LookPath("curl"); err != nil { // runners have it, and this machine need not
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(bin, "curl"), "#!/bin/sh\n"+curlVariable+"=yes exec '"+self+"' \"$@\"\n", 0o700)
	}
	return j
}

// environment is what every job finds in its environment.
func (j *job) environment() []string {
	return environment("PATH="+filepath.Join(j.dir, "bin")+":"+os.Getenv("PATH"), "HOME="+j.dir)
}

// start starts the runner.
func (j *job) start(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	j.output.news = make(chan struct{}, 1)
	j.runner = exec.Command(name, args...)
	j.runner.Dir, j.runner.Env = j.dir, env
	j.runner.Stdout, j.runner.Stderr = &j.output, &j.output
	j.runner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := j.runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.kill(t) })
}

// kill kills the runner and its children by SIGKILL.
func (j *job) kill(t *testing.T) {
	t.Helper()
	if j.runner.ProcessState != nil {
		return
	}
	if err := syscall.Kill(-j.runner.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = j.runner.Wait() // it was killed
	if t.Failed() {
		t.Logf("the job printed:\n%s", &j.output)
	}
}

// saw waits until the job has printed a text.
func (j *job) saw(t *testing.T, text string) {
	t.Helper()
	limit := time.After(patience)
	for !strings.Contains(j.output.String(), text) {
		select {
		case <-j.output.news:
		case <-limit:
			t.Fatalf("the job has not printed %q:\n%s", text, &j.output)
		}
	}
}

// allowClaims lets a user of CI do in the namespace what docs/ci/tokens.md says.
func (h *hub) allowClaims(t *testing.T, namespace, user string) {
	t.Helper()
	h.create(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "claims"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"hive.openshift.io"}, Resources: []string{"clusterclaims"},
			Verbs: []string{"create", "get", "list", "watch", "patch", "delete"},
		}},
	})
	h.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "repositories"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "claims"},
		Subjects:   []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: user}},
	})
}

// A job of GitHub Actions claims a cluster with its token, waits for longer than the token lives, and is killed
// while it uses the cluster. No secret of the hub is stored.
func TestAJobClaimsWithItsTokenAndIsKilled(t *testing.T) {
	h := shared(t)
	issuer := common.issuer
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 0, 0)
	h.create(t, pool)
	h.allowClaims(t, ns, "github:acme/shop")
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	job := h.startJob(t, issuer, "acme/shop", map[string]string{
		"hub": h.url, "pool": pool.Name, "namespace": ns, "certificate-authority": string(config.CAData), "heartbeat-timeout": "1m",
	})
	job.saw(t, "clusterclaim.hive.openshift.io/gh-7-1-")

	t.Log("it waits for a cluster until its token has expired")
	expired := time.Now().Add(tokenLifetime)
	idle(func() {
		eventually(t, "the token expires", func(context.Context) error {
			if left := time.Until(expired); left > 0 {
				return fmt.Errorf("in %s", left)
			}
			return nil
		})
	})
	before := pool.DeepCopy()
	pool.Spec.Size, pool.Spec.RunningCount = 1, 1
	if err := h.Patch(t.Context(), pool, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	job.saw(t, "the step has ended")
	var claims hivev1.ClusterClaimList
	if err := h.List(t.Context(), &claims, client.InNamespace(ns)); err != nil || len(claims.Items) != 1 {
		t.Fatalf("%d claims, %v", len(claims.Items), err)
	}
	claim := &claims.Items[0]
	kubeconfig := filepath.Join(job.dir, claim.Name+".kubeconfig")
	env, err := os.ReadFile(filepath.Join(job.dir, "env"))
	if err != nil || string(env) != "KUBECONFIG="+kubeconfig+"\n" {
		t.Errorf("the steps that follow get %q, %v", env, err)
	}
	secret, _ := h.adminSecrets(t, get(t, h, cluster(claim.Spec.Namespace)))
	if raw, err := os.ReadFile(kubeconfig); err != nil || string(raw) != string(secret.Data["kubeconfig"]) {
		t.Errorf("the kubeconfig of the cluster: %q, %v", raw, err)
	}

	t.Log("the runner is killed: hotspare releases the claim")
	killed := time.Now()
	job.kill(t)
	idle(func() {
		h.gone(t, claim)
		t.Logf("the claim is gone %s after the runner", time.Since(killed).Round(time.Second))
	})
	if strings.Contains(job.output.String(), jobSecret) || strings.Contains(job.output.String(), "eyJ") {
		t.Errorf("the job printed a secret:\n%s", &job.output)
	}
}

// With input run, the step releases the cluster when its command has ended, and fails as the command does.
func TestAJobRunsOneCommandWithACluster(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "ci", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)
	h.allowClaims(t, ns, "github:acme/shop")
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	wrong := h.startJob(t, common.issuer, "acme/shop", map[string]string{
		"hub": h.url, "pool": pool.Name, "namespace": ns, "certificate-authority": string(config.CAData), "heartbeat-timeout": "1m30s",
	})
	if err := wrong.runner.Wait(); err == nil || !strings.Contains(wrong.output.String(), "HEARTBEAT_TIMEOUT is 1m30s: write seconds or minutes") {
		t.Errorf("a heartbeat that cannot be renewed: %v\n%s", err, &wrong.output)
	}
	job := h.startJob(t, common.issuer, "acme/shop", map[string]string{
		"hub": h.url, "pool": pool.Name, "namespace": ns, "certificate-authority": string(config.CAData),
		"run": `grep -c server: "$KUBECONFIG" | sed "s/^/servers: /"; exit 7`,
	})
	err = job.runner.Wait()
	if job.runner.ProcessState.ExitCode() != 7 || !strings.Contains(job.output.String(), "servers: 1\n") {
		t.Errorf("%v:\n%s", err, &job.output)
	}
	var claims hivev1.ClusterClaimList
	if err := h.List(t.Context(), &claims, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for i := range claims.Items {
		if claims.Items[i].DeletionTimestamp.IsZero() {
			t.Errorf("claim %s was not released", claims.Items[i].Name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(job.dir, "*.kubeconfig*")); err != nil || len(left) > 0 {
		t.Errorf("the job has left %v, %v", left, err)
	}
}

// The hub accepts a token only if issuer, key, audience, owner and time are right.
func TestTheHubRefusesTokensOfOthers(t *testing.T) {
	h := shared(t)
	issuer := common.issuer
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	with := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := issuer.claimsOf("acme/shop", tokenAudience, now)
		c["exp"] = now.Add(10 * patience).Unix()
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		key    *rsa.PrivateKey
		user   string
	}{
		"its own":                     {with(func(jwt.MapClaims) {}), issuer.key, "github:acme/shop"},
		"another audience":            {with(func(c jwt.MapClaims) { c["aud"] = "other" }), issuer.key, ""},
		"another issuer":              {with(func(c jwt.MapClaims) { c["iss"] = "https://token.example.com" }), issuer.key, ""},
		"another key":                 {with(func(jwt.MapClaims) {}), stranger, ""},
		"another owner":               {with(func(c jwt.MapClaims) { c["repository_owner"] = "acme-inc" }), issuer.key, ""},
		"the name of another owner":   {with(func(c jwt.MapClaims) { c["repository_owner_id"] = "12345679" }), issuer.key, ""},
		"expired":                     {with(func(c jwt.MapClaims) { c["exp"] = now.Add(-time.Minute).Unix() }), issuer.key, ""},
		"not valid yet":               {with(func(c jwt.MapClaims) { c["nbf"] = now.Add(time.Hour).Unix() }), issuer.key, ""},
		"without an owner":            {with(func(c jwt.MapClaims) { delete(c, "repository_owner") }), issuer.key, ""},
		"without the ID of its owner": {with(func(c jwt.MapClaims) { delete(c, "repository_owner_id") }), issuer.key, ""},
		"a group of the hub's":        {with(func(c jwt.MapClaims) { c["groups"] = []string{"system:masters"} }), issuer.key, "github:acme/shop"},
	} {
		token, err := issuer.sign(c.key, c.claims)
		if err != nil {
			t.Fatal(err)
		}
		me, err := whoAmI(t.Context(), config, token)
		switch {
		case c.user == "" && !apierrors.IsUnauthorized(err):
			t.Errorf("%s: the hub accepted it, or failed: %v, %v", name, me, err)
		case c.user != "" && (err != nil || me.Username != c.user || strings.Join(me.Groups, " ") != "github:acme system:authenticated"):
			t.Errorf("%s: the hub takes it for %+v, %v", name, me, err)
		}
	}
}

// whoAmI returns the user that the hub takes the bearer of a token for.
func whoAmI(ctx context.Context, config *rest.Config, token string) (authenticationv1.UserInfo, error) {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.BearerToken = token
	c, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}
