//go:build containers

package containers

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnOrdinaryUserFreezesACluster freezes a cluster with a real pod without the rights of root, thaws it, freezes it again and
// kills the hub: nothing of it is left.
func TestAnOrdinaryUserFreezesACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	dir := makeUserFolder(t)
	manifest := clusterManifestOf("own", "workers: 1, containers: Always")
	archive, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"cluster.yaml": manifest, "pod.yaml": rootlessPod, "run.sh": rootlessFreeze, "image": string(archive)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // another user reads it
			t.Fatal(err)
		}
	}
	out, err := asOrdinaryUser(ctx, t, dir, "sh", filepath.Join(dir, "run.sh")).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Hibernating (freeze)", "restarts after the thaw: 0\n", "nodes without metrics of pods: 1\n", "pods with metrics: 0\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q", want)
		}
	}
	deadline := time.Now().Add(2 * time.Minute)
	left := processesOf(dir)
	for ; len(left) > 0 && time.Now().Before(deadline); left = processesOf(dir) {
		time.Sleep(200 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("left two minutes after the hub was killed:\n%s", strings.Join(left, "\n"))
	}
}

const rootlessPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: "hotspare.test/testpod:1", command: [testpod, serve, ":8080"], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}}
`

const rootlessFreeze = `set -e
H=$HOME/hotspare
export HOTSPARE_DATA_DIR=$PWD/data KUBECONFIG=$PWD/data/kubeconfig
$H up --data-dir $HOTSPARE_DATA_DIR > up.log 2>&1 & HUB=$!
until grep -q "ready in" up.log; do kill -0 $HUB; sleep 0.5; done
$H image load $HOME/image
$H kubectl apply --server-side --force-conflicts -f $HOME/cluster.yaml
$H kubectl wait clusterdeployment/own --for=jsonpath='{.spec.installed}'=true --timeout=5m
SECRET=$($H kubectl get clusterdeployment own -o jsonpath='{.spec.clusterMetadata.adminKubeconfigSecretRef.name}')
$H kubectl get secret $SECRET -o 'go-template={{.data.kubeconfig | base64decode}}' > own.kubeconfig
$H kubectl --kubeconfig own.kubeconfig apply -f $HOME/pod.yaml
$H kubectl --kubeconfig own.kubeconfig wait pod/web --for=condition=Ready --timeout=3m
$H cluster hibernate own --depth freeze --wait
$H cluster list
$H cluster resume own --wait
echo "restarts after the thaw: $($H kubectl --kubeconfig own.kubeconfig get pod web -o jsonpath='{.status.containerStatuses[0].restartCount}')"
echo "nodes without metrics of pods: $($H kubectl --kubeconfig own.kubeconfig get nodes -l hotspare.io/unmeasured-pods --no-headers | wc -l)"
echo "pods with metrics: $($H kubectl --kubeconfig own.kubeconfig get --raw /apis/metrics.k8s.io/v1beta1/pods | grep -c '"containers"')"
$H cluster hibernate own --wait
kill -9 $HUB
`
