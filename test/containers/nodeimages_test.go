//go:build containers

package containers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// workerFolder returns the folder of the only worker of a cluster, and waits until it exists.
func (h *hub) workerFolder(t *testing.T, name string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if paths, _ := filepath.Glob(filepath.Join(h.dir, "machines", name+"-*", "*-worker-0")); len(paths) == 1 {
			return paths[0]
		}
	}
	t.Fatalf("cluster %s has no worker", name)
	return ""
}

// TestAClusterHasImagesFromItsStart creates a cluster whose image does not exist yet. Its installation waits for the image,
// says so, and goes on when the image is loaded. Its first pod pulls nothing.
func TestAClusterHasImagesFromItsStart(t *testing.T) {
	t.Parallel()
	later := badRegistry.Host + "/later:1" // the registry does not have it
	t.Cleanup(func() {
		_ = shared.command(context.Background(), "kubectl", "delete", "clusterdeployment", "images", "--ignore-not-found").Run()
	})
	shared.apply(t, clusterManifestOf("images", fmt.Sprintf("workers: 1, containers: Always, images: [%q, %q]", imageName, later)))
	worker := shared.workerFolder(t, "images")
	var problem string
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline) && !strings.Contains(problem, later); time.Sleep(300 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(worker, "problem"))
		problem = string(raw)
	}
	if !strings.HasPrefix(problem, "the image "+later+" could not be pulled: ") {
		t.Fatalf("the worker waits for %q", problem)
	}
	if out := shared.run(t, "kubectl", "get", "clusterdeployment", "images", "-o", "jsonpath={.spec.installed}"); out == "true" {
		t.Error("the cluster is installed without its images")
	}
	shared.run(t, "image", "load", image, "--name", later)
	c := shared.createCluster(t, "images", clusterManifestOf("images", fmt.Sprintf("workers: 1, containers: Always, images: [%q, %q]", imageName, later)))
	if raw, err := os.ReadFile(filepath.Join(worker, "problem")); err == nil {
		t.Errorf("the problem stays: %s", raw)
	}
	c.apply(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: first}\nspec: {containers: [{name: main, image: %q}]}\n", later))
	c.kubectl("wait", "pod/first", "--for=condition=Ready", "--timeout=3m")
	c.eventually(time.Minute, "already present on machine", "get", "events", "--field-selector=involvedObject.name=first,reason=Pulled", "-o", "jsonpath={.items[*].message}")
	t.Run("an image that was deleted is pulled again by a cluster that resumes", func(t *testing.T) { testDeletedImage(t, c.of(t), worker, later) })
}

// ctr runs ctr on the containerd of a worker, whose folder is dir.
func ctr(ctx context.Context, dir string, arguments ...string) (string, error) {
	socket := fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", machineProcess(dir))
	out, err := exec.CommandContext(ctx, "ctr", append([]string{"--address", socket, "--namespace", "k8s.io"}, arguments...)...).CombinedOutput()
	return string(out), err
}

// testDeletedImage deletes an image of a cluster that hibernates and resumes.
func testDeletedImage(t *testing.T, c *cluster, worker, name string) {
	c.kubectl("delete", "pod", "first", "--wait")
	if out, err := ctr(t.Context(), worker, "images", "rm", "--sync", name); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.hub.run(t, "cluster", "hibernate", c.name, "--wait")
	c.hub.run(t, "cluster", "resume", c.name, "--wait")
	var out string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		var err error
		if out, err = ctr(t.Context(), worker, "images", "list", "--quiet", "name=="+name); err == nil && strings.Contains(out, name) {
			return
		}
	}
	t.Errorf("the image is not pulled again: %s", out)
}

// testDiskLimit tests that a pod that writes more than its limit is evicted.
func testDiskLimit(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "dd if=/dev/zero of=/file bs=1M count=64; exec sleep 100000"] # a program that ends well after SIGTERM has succeeded
    resources: {limits: {ephemeral-storage: 16Mi}}
`)
	c.eventually(3*time.Minute, "Evicted", "get", "pod", "writer", "-o", "jsonpath={.status.reason}")
	if out := c.kubectl("get", "pod", "writer", "-o", "jsonpath={.status.message}"); !strings.Contains(out, "ephemeral") {
		t.Errorf("the message of the pod is %q", out)
	}
}

// testAttachment tests that a volume of a CSI driver is attached to the node of its pod, which the driver does for an object
// that Kubernetes creates.
func testAttachment(t *testing.T, c *cluster) {
	c.apply(`apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disks.example.com}
spec: {attachRequired: true}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  csi: {driver: disks.example.com, volumeHandle: disk-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: with-disk}
spec:
  containers: [{name: main, image: "hotspare.test/testpod:1", volumeMounts: [{name: disk, mountPath: /disk}]}]
  volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]
`)
	c.eventually(time.Minute, "disks.example.com disk", "get", "volumeattachments", "-o", "jsonpath={.items[*].spec['attacher','source.persistentVolumeName']}")
	c.kubectl("delete", "pod", "with-disk", "--wait=false")
	c.kubectl("delete", "csidriver", "disks.example.com")
}
