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
	client, err := i.newClusterClient(f)
	if err != nil {
		return "", err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var missing missingPart
	for {
		if err := i.checkMachines(ms[0].InfraID); err != nil {
			return "", err
		}
		now := i.findMissingPart(ctx, client, ms)
		if ctx.Err() != nil {
			if missing.what == "" {
				missing = missingPart{what: now.what, machine: now.machine} // the request was interrupted: its error says nothing about the cluster
			}
			return "", missing.explain(context.Cause(ctx))
		}
		if now.what == "" {
			break
		}
		now.logChange(log, missing)
		missing = now
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

// missingPart is what is missing until a cluster is usable; the zero value stands for nothing.
type missingPart struct {
	what string
	// machine is the machine whose node is missing, and problem is why, if that is known.
	machine, problem string
	// err is an answer of the API, or the lack of one, if it is the reason.
	err error
}

// explain returns the error of an installation that ended while the part was missing.
func (p missingPart) explain(end error) error {
	reason := p.problem
	if p.err != nil {
		reason = p.err.Error()
	}
	if reason != "" {
		reason = " (" + reason + ")"
	}
	err := fmt.Errorf("waiting for %s: %w%s", p.what, end, reason)
	if p.machine == "" {
		return err
	}
	return &machineError{machine: p.machine, cause: err}
}

// logChange logs what is missing, if it differs from what was missing before. Errors of the API change too often.
func (p missingPart) logChange(log *slog.Logger, before missingPart) {
	switch {
	case p.what == before.what && p.problem == before.problem:
	case p.problem == "":
		log.Info("waiting for " + p.what)
	default:
		log.Info("waiting for "+p.what, "problem", p.problem)
	}
}

// machineError is the error of an installation that failed because of a machine.
type machineError struct {
	machine string
	cause   error
}

// Error implements error.
func (e *machineError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *machineError) Unwrap() error { return e.cause }

// newClusterClient returns a client of a new cluster that authenticates as the hub: what the installer asks is no use of the
// cluster.
func (i *Installer) newClusterClient(f folder) (kubernetes.Interface, error) {
	raw, err := os.ReadFile(f.kubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cert, key, err := IssueHubIdentity(i.store, c)
	if err != nil {
		return nil, fmt.Errorf("issuing the hub's client certificate for the new cluster: %w", err)
	}
	if cert != nil {
		c.CertData, c.KeyData = cert, key
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
			return &machineError{m.Name, fmt.Errorf("%w: %s: %s", errMachine, m.Name, m.Reason)}
		case cloud.Stopped, cloud.Stopping:
			return &machineError{m.Name, fmt.Errorf("%w: %s stopped while the cluster was being installed", errMachine, m.Name)}
		}
	}
	return nil
}

// findMissingPart returns what is missing until the cluster is usable.
func (i *Installer) findMissingPart(ctx context.Context, client kubernetes.Interface, ms []machine.Config) missingPart {
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return missingPart{what: "the API", err: err}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return missingPart{what: "the list of nodes", err: err}
	}
	for _, m := range ms {
		if part := i.findMissingNode(m, nodes.Items); part.what != "" {
			return part
		}
	}
	// Pods cannot be created before the default ServiceAccount exists.
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return missingPart{what: "the default service account", err: err}
	}
	if ms[0].OpenShiftVersion == "" {
		return missingPart{}
	}
	what, err := findMissingReleasePart(ctx, client)
	return missingPart{what: what, err: err}
}

// findMissingNode returns the node of a machine if it is not ready, with what the machine or else the node says about it.
func (i *Installer) findMissingNode(m machine.Config, nodes []corev1.Node) missingPart {
	part := missingPart{what: "node " + m.Name, machine: m.Name, problem: machine.ReadProblem(i.store.MachineDir(m.InfraID, m.Name))}
	n := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == m.Name })
	if n < 0 {
		return part
	}
	c := slices.IndexFunc(nodes[n].Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if c < 0 {
		return part
	}
	ready := nodes[n].Status.Conditions[c]
	if ready.Status == corev1.ConditionTrue {
		return missingPart{}
	}
	part.problem = cmp.Or(part.problem, ready.Message)
	return part
}

// findMissingReleasePart returns what is missing of the parts that only an OpenShift cluster has; "" if nothing is. The
// error gives the reason, if it is an answer of the API or the lack of one.
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
