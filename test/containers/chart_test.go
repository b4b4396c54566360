//go:build containers

package containers

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTheChart installs hotspare's own chart in a local cluster with helm. Its pods serve a pool, and
// install an agent on a data plane, which is the same cluster, as a pod.
func TestTheChart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, program := range map[string]string{"hotspare.test/manager:test": binary + "-manager", "hotspare.test/agent:1": binary} {
		archive, err := makeProgramImage(dir, name, program)
		if err != nil {
			t.Fatal(err)
		}
		shared.run(t, "image", "load", archive)
	}
	c := shared.newCluster(t, "chart", 1)
	began := time.Now()
	c.helm("install", "hotspare", "../../charts/hotspare", "--namespace", "hotspare-system", "--create-namespace",
		"--set", "image.repository=hotspare.test/manager,image.tag=test,agents.image=hotspare.test/agent:1,agents.hubServer=https://kubernetes.default.svc",
		"--wait", "--timeout", "2m")
	t.Logf("installed after %s", time.Since(began).Round(100*time.Millisecond))
	t.Run("a pool is filled", func(t *testing.T) { c.of(t).fillPool() })
	t.Run("an agent runs as a pod", func(t *testing.T) { c.of(t).installAgent() })
}

// of returns the cluster for a part of a test.
func (c *cluster) of(t *testing.T) *cluster {
	own := *c
	own.t = t
	return &own
}

// helm runs helm on the cluster.
func (c *cluster) helm(arguments ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("..", "..", "bin", "helm"), arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		pods, _ := c.try(ctx, "", "describe", "pods", "--all-namespaces")
		c.t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(arguments, " "), err, out, pods)
	}
}

func (c *cluster) fillPool() {
	c.t.Helper()
	c.apply(`apiVersion: v1
kind: Namespace
metadata: {name: pools}
---
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: kubernetes}
spec: {releaseImage: "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64"}
---
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: fake, namespace: pools}
spec:
  size: 2
  runningCount: 2
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  annotations: {hive.openshift.io/fake-cluster: "true"}
  platform: {aws: {region: us-east-1, credentialsSecretRef: {name: none}}}
`)
	c.eventually(time.Minute, "2", "get", "clusterpool", "fake", "-n", "pools", "-o", "jsonpath={.status.ready}")
}

func (c *cluster) installAgent() {
	c.t.Helper()
	raw, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	server := c.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	inside := strings.ReplaceAll(string(raw), server, "https://kubernetes.default.svc")
	c.apply(fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: fleet}
---
apiVersion: v1
kind: Secret
metadata: {name: mine-kubeconfig, namespace: fleet}
data: {kubeconfig: %s}
---
apiVersion: hotspare.io/v1alpha1
kind: InstanceType
metadata: {name: standard}
spec:
  nodesPerUnit: 1
  sizes: [{name: x1, units: 1}]
  nodePools: [{platform: aws, machineType: r5.xlarge, maxNodes: 3}]
---
apiVersion: hotspare.io/v1alpha1
kind: FleetRegion
metadata: {name: use1, namespace: fleet}
spec:
  provider: aws
  region: us-east-1
  instanceTypes: [{name: standard, limit: 20}]
  clusterSource: {claim: {pools: [{poolRef: {name: none}}]}}
---
apiVersion: hotspare.io/v1alpha1
kind: DataPlane
metadata: {name: mine, namespace: fleet}
spec:
  provider: aws
  region: us-east-1
  instanceTypes: [standard]
  ownership: Registered
  clusterRef: {kubeconfigSecret: {name: mine-kubeconfig}}
`, base64.StdEncoding.EncodeToString([]byte(inside))))
	defer func() {
		if c.t.Failed() {
			for _, arguments := range [][]string{
				{"get", "dataplane,fleetregion", "-n", "fleet", "-o", "yaml"},
				{"describe", "pods", "-n", "hotspare-agent"},
				{"logs", "-n", "hotspare-agent", "deployment/hotspare-agent"},
				{"logs", "-n", "hotspare-system", "deployment/hotspare-manager", "--tail=30"},
			} {
				out, err := c.try(context.WithoutCancel(c.t.Context()), "", arguments...)
				c.t.Logf("%s: %v\n%s", strings.Join(arguments, " "), err, out)
			}
		}
	}()
	c.eventually(3*time.Minute, "True", "get", "dataplane", "mine", "-n", "fleet", "-o", `jsonpath={.status.conditions[?(@.type=="AgentLive")].status}`)
	c.eventually(3*time.Minute, "1", "get", "deployment", "hotspare-agent", "-n", "hotspare-agent", "-o", "jsonpath={.status.availableReplicas}")
}
