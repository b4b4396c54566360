package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/spoke"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
	"hotspare.io/hotspare/internal/fleet/agent"
	"hotspare.io/hotspare/internal/version"
)

const agentLong = `Run the agent of a data plane. The agent creates the instances that the hub lists in a
DataPlaneAgent, and reports their state. It runs in a pod on the data plane;
docs/agent.md describes its installation and permissions.

Without --kubeconfig, the data plane is the cluster in which the agent runs.`

// shutdownGrace is the time that the agent has to stop after the process that started it has exited.
const shutdownGrace = 5 * time.Second

type agentFlags struct {
	hub, plane                            string
	namespace, name, uid, operator, pause string
}

func agentCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of a data plane",
		Long:  agentLong,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runAgent(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.hub, "hub-kubeconfig", "", "kubeconfig `file` of the hub; it must not refer to other files or programs")
	cmd.Flags().StringVar(&f.plane, "kubeconfig", "", "kubeconfig `file` of the data plane (default: the cluster in which the agent runs)")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the DataPlaneAgent")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the DataPlaneAgent")
	cmd.Flags().StringVar(&f.uid, "data-plane-uid", "", "UID of the DataPlane: the agent ignores another DataPlane with the same name")
	cmd.Flags().StringVar(&f.operator, "operator", agent.Fleetshard,
		"what runs the instances: fleetshard (operators on the data plane) or stand-in (idle pods that the agent creates)")
	cmd.Flags().StringVar(&f.pause, "pause-image", agent.PauseImage, "image of the idle pods")
	return cmd
}

func (f agentFlags) validate() error {
	for flag, value := range map[string]string{"hub-kubeconfig": f.hub, "name": f.name, "namespace": f.namespace} {
		if value == "" {
			return fmt.Errorf("--%s is missing", flag)
		}
	}
	if f.operator != agent.Fleetshard && f.operator != agent.StandIn {
		return fmt.Errorf("--operator is %q: choose %s or %s", f.operator, agent.Fleetshard, agent.StandIn)
	}
	return nil
}

func runAgent(ctx context.Context, f agentFlags) error {
	if err := f.validate(); err != nil {
		return base.NewUsageError(err)
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv(spoke.ParentPipe) == "1" {
		go endWithPipe(os.Stdin, cancel)
	}
	hub, err := loadHubConfig(f.hub)
	if err != nil {
		return fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	plane, err := loadPlaneConfig(f.plane)
	if err != nil {
		return fmt.Errorf("reading how to reach the data plane: %w", err)
	}
	return agent.Run(ctx, agent.Options{
		Hub: hub, Plane: plane, Namespace: f.namespace, Name: f.name, UID: f.uid,
		Operator: f.operator, Pause: f.pause, Version: version.Get(),
	})
}

// endWithPipe stops this process when the pipe is closed, because its parent has then exited and
// cannot stop it.
func endWithPipe(pipe io.Reader, cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, pipe) // an error ends the pipe too
	cancel()
	time.AfterFunc(shutdownGrace, func() { os.Exit(1) })
}

// loadHubConfig reads a kubeconfig from an untrusted source. It must not refer to files or programs
// of this machine: their content would be sent to a server that the source has chosen.
func loadHubConfig(path string) (*rest.Config, error) {
	if err := checkPathInPod(path); err != nil {
		return nil, err
	}
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, errors.New("it cannot be read as a kubeconfig") // the cause may quote its content
	}
	for _, u := range raw.AuthInfos {
		if u.Exec != nil || u.AuthProvider != nil || u.TokenFile != "" || u.ClientCertificate != "" || u.ClientKey != "" {
			return nil, errors.New("a user in it has a program or a file: write token, or client-certificate-data and client-key-data")
		}
	}
	for _, c := range raw.Clusters {
		if c.CertificateAuthority != "" {
			return nil, errors.New("a cluster in it has a file: write certificate-authority-data")
		}
	}
	return newClientConfig(raw)
}

func newClientConfig(raw *clientcmdapi.Config) (*rest.Config, error) {
	return clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
}

// loadPlaneConfig returns the configuration for the data plane: by default, the cluster in which the
// agent runs. In a pod of a local machine, only the pod's own cluster is allowed.
func loadPlaneConfig(path string) (*rest.Config, error) {
	if os.Getenv(node.PodDir) != "" {
		if path != "" {
			return nil, errors.New("--kubeconfig is of no use in a pod of a local machine: leave it out")
		}
		path = os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	if path == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", path)
}

// checkPathInPod returns an error for a path outside of the pod's folder. In a pod of a local
// machine, nothing else prevents the agent from reading files of the machine.
func checkPathInPod(path string) error {
	dir := os.Getenv(node.PodDir)
	if dir == "" {
		return nil
	}
	full, err := filepath.EvalSymlinks(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("finding it: %w", err)
	}
	if below, err := filepath.Rel(dir, full); err != nil || below == ".." || strings.HasPrefix(below, "../") {
		return errors.New("it is not in a volume of the pod")
	}
	return nil
}
