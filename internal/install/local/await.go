package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const (
	// pollInterval is how often the new cluster is checked. It takes three seconds to boot.
	pollInterval = 100 * time.Millisecond
	// requestTimeout bounds one request to the cluster's API.
	requestTimeout = 5 * time.Second
)

// errMachine is the cause of a failed installation whose machines do not run.
var errMachine = errors.New("machine does not run")

// waitUntilUsable waits until the cluster is usable, and returns its Kubernetes version.
func (i *Installer) waitUntilUsable(ctx context.Context, f folder, ms []machine.Config, log *slog.Logger) (string, error) {
	client, err := newClusterClient(f)
	if err != nil {
		return "", err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var missing string
	var why error
	for {
		if err := i.checkMachines(ms[0].InfraID); err != nil {
			return "", err
		}
		now, err := findMissingPart(ctx, client, ms)
		if ctx.Err() != nil {
			// The last request was interrupted, so its error says nothing about the cluster.
			return "", fmt.Errorf("waiting for %s: %w%s", cmp.Or(missing, now), context.Cause(ctx), formatCause(why))
		}
		if now == "" {
			break
		}
		if now != missing {
			log.Info("waiting for " + now)
		}
		missing, why = now, err
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return strings.TrimPrefix(version.GitVersion, "v"), nil
}

// formatCause formats why the API did not answer, if it did not.
func formatCause(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", err)
}

func newClusterClient(f folder) (kubernetes.Interface, error) {
	raw, err := os.ReadFile(f.kubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c.Timeout = requestTimeout
	c.QPS = -1 // a wait in the client would be reported as one for the API
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("making a client of the new cluster: %w", err)
	}
	return client, nil
}

// checkMachines returns an error if a machine has failed or stopped: waiting longer would not help.
func (i *Installer) checkMachines(infraID string) error {
	ms, err := i.store.ObserveCluster(infraID)
	if err != nil {
		return err
	}
	for _, m := range ms {
		switch m.State {
		case cloud.Failed:
			return fmt.Errorf("%w: %s: %s", errMachine, m.Name, m.Reason)
		case cloud.Stopped, cloud.Stopping:
			return fmt.Errorf("%w: %s stopped while the cluster was being installed", errMachine, m.Name)
		}
	}
	return nil
}

// findMissingPart returns what is missing until the cluster is usable, "" if nothing is. The error
// gives the reason, if it is an answer of the API or the lack of one.
func findMissingPart(ctx context.Context, client kubernetes.Interface, ms []machine.Config) (string, error) {
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return "the API", err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "the list of nodes", err
	}
	for _, m := range ms {
		if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == m.Name && isNodeReady(n) }) {
			return "node " + m.Name, nil
		}
	}
	// Pods cannot be created before the default ServiceAccount exists.
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return "the default service account", err
	}
	if ms[0].OpenShiftVersion == "" {
		return "", nil
	}
	return findMissingReleasePart(ctx, client)
}

// findMissingReleasePart is findMissingPart for the parts that only an OpenShift cluster has.
func findMissingReleasePart(ctx context.Context, client kubernetes.Interface) (string, error) {
	const what = "the cluster version to be available"
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/apis/config.openshift.io/v1/clusterversions/version").DoRaw(ctx)
	if err != nil {
		return what, err
	}
	var version struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return what, err
	}
	if !meta.IsStatusConditionTrue(version.Status.Conditions, "Available") {
		return what, nil
	}
	return "", nil
}

func isNodeReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
