//go:build containers

package containers

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

// manyPods is less than a worker can run, 250: the tests share two processors.
var manyPods = flag.Int("pods", 100, "how many pods TestManyPods runs on one worker")

// TestManyPods runs many pods on one worker. All become ready, and stop with the cluster.
func TestManyPods(t *testing.T) {
	t.Parallel()
	c := shared.newCluster(t, "crowd", 1)
	began := time.Now()
	c.apply(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: crowd}
spec:
  replicas: %d
  selector: {matchLabels: {app: crowd}}
  template:
    metadata: {labels: {app: crowd}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "hotspare.test/testpod:1"}]
`, *manyPods))
	c.kubectl("rollout", "status", "deployment/crowd", "--timeout=5m")
	t.Logf("%d pods are ready after %s", *manyPods, time.Since(began).Round(100*time.Millisecond))
	began = time.Now()
	c.setPowerState("Hibernating")
	t.Logf("hibernating after %s", time.Since(began).Round(100*time.Millisecond))
	for _, dir := range machinesOf(t, c) {
		if left := leftovers(dir); len(left) > 0 {
			t.Errorf("left by %s: %d, such as %s", dir, len(left), left[0])
		}
	}
}
