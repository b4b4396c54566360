package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const clusterLogsLong = `Print the install log of a cluster, and for a local cluster the logs of its machines.
NAME is the name of a claim in the namespace or, failing that, of a cluster.

The logs of a local cluster are files in the data folder, so run this command on the
machine that runs the hub. For a cluster of a recipe, the command prints the saved log of
the recipe's programs, and runs the program logs if the recipe has one: run it there, too.
For other clusters, the command prints the log of the installer's pod. It also prints the
saved logs of failed install attempts.`

// logOptions are the flags of cluster logs.
type logOptions struct {
	machine string
	tail    int
	// printed is set once a log has been printed.
	printed bool
}

func (a commands) logsCommand() *cobra.Command {
	q := &logOptions{}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the install log of a cluster, and the logs of its machines or recipe",
		Long:  clusterLogsLong,
		Example: `  hotspare cluster logs mine
  hotspare cluster logs mine --machine mine-x7k2p-master-0 --tail 500`,
		Args:              base.RequireOneName("cluster or claim"),
		ValidArgsFunction: a.CompleteClusters,
	}
	cmd.Flags().StringVar(&q.machine, "machine", "", "print the log of this machine only")
	cmd.Flags().IntVar(&q.tail, "tail", 100, "number of lines to print from the end of each log (-1: all)")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("machine", cobra.NoFileCompletions))
	cmd.RunE = a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
		cd, err := a.FindCluster(ctx, h, args[0])
		if err != nil {
			return err
		}
		return a.printClusterLogs(ctx, h, cd, q)
	})
	return cmd
}

func (a commands) printClusterLogs(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, q *logOptions) error {
	found, err := a.findLogFiles(cd, q)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := a.printLogFile(f, q); err != nil {
			return err
		}
	}
	if q.machine != "" {
		return nil
	}
	n, err := a.printInstallLogs(ctx, h, cd, q)
	if err != nil {
		return err
	}
	if cd.Spec.Platform.Exec != nil {
		more, err := a.printRecipeLogs(ctx, h, cd, q)
		if err != nil {
			return err
		}
		n += more
	}
	if n+len(found) == 0 {
		return base.WithRemedy(fmt.Errorf("no log of cluster %s found", cd.Name), a.describeLogLocation(cd))
	}
	return nil
}

// describeLogLocation returns a hint where to find the logs.
func (a commands) describeLogLocation(cd *hivev1.ClusterDeployment) string {
	switch {
	case cd.Spec.Platform.Local != nil:
		return "the logs of local clusters are in the data folder of the hub, on the hub's machine: specify it with --data-dir"
	case cd.Spec.Platform.Exec != nil:
		return "no program of the recipe has run, or its log is in another data folder, on the hub's machine: specify it with --data-dir"
	}
	return "no install attempt saved a log, and no installer is running; see: " + a.FormatCommand("cluster describe %s", cd.Name)
}

// logFile is a log in the data folder.
type logFile struct{ title, path string }

// findLogFiles finds the logs of a local cluster, or of one machine.
func (a commands) findLogFiles(cd *hivev1.ClusterDeployment, q *logOptions) ([]logFile, error) {
	if cd.Spec.Platform.Local == nil || cd.Spec.ClusterMetadata == nil {
		if q.machine != "" {
			return nil, fmt.Errorf("cluster %s has no machines on this computer: only the machines of installed local clusters have logs", cd.Name)
		}
		return nil, nil
	}
	infraID := cd.Spec.ClusterMetadata.InfraID
	m := base.Machines{Dir: filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "machines", infraID)}
	var err error
	if m.All, err = machine.LoadConfigs(m.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("finding the machines of cluster %s: %w", cd.Name, err)
	}
	if len(m.All) == 0 && q.machine != "" {
		return nil, base.WithRemedy(fmt.Errorf("cluster %s has no machines in %s", cd.Name, m.Dir), a.describeLogLocation(cd))
	}
	var out []logFile
	if q.machine == "" {
		out = append(out, logFile{"install", filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "installs", infraID, ".openshift_install.log")})
	} else {
		c, err := m.FindMachine(q.machine)
		if err != nil {
			return nil, base.NewUsageError(err)
		}
		m.All = []machine.Config{c}
	}
	for _, c := range m.All {
		out = append(out, logFile{"machine " + c.Name, machine.LogPath(m.MachineFolder(c))})
	}
	return slices.DeleteFunc(out, func(f logFile) bool {
		_, err := os.Stat(f.path)
		return errors.Is(err, os.ErrNotExist) // not started yet
	}), nil
}

func (a commands) printLogFile(f logFile, q *logOptions) error {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", f.title, err)
	}
	return a.writeLogTail(f.title+", "+f.path, raw, q)
}

// writeLogTail prints the end of a log below a title, as tail does.
func (a commands) writeLogTail(title string, raw []byte, q *logOptions) error {
	between := ""
	if q.printed {
		between = "\n"
	}
	q.printed = true
	_, err := fmt.Fprintf(a.Stdout, "%s==> %s <==\n%s", between, title, lastLines(raw, q.tail))
	return err
}

// lastLines returns the last n lines of a text; all lines if n is negative.
func lastLines(raw []byte, n int) []byte {
	raw = bytes.TrimRight(raw, "\n")
	if len(raw) == 0 {
		return nil
	}
	lines := bytes.Split(raw, []byte("\n"))
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	if len(lines) == 0 {
		return nil
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// printInstallLogs prints the saved logs of failed attempts and the logs of the installer's pods,
// and returns the number of logs.
func (a commands) printInstallLogs(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, q *logOptions) (int, error) {
	var attempts hivev1.ClusterProvisionList
	if err := h.List(ctx, &attempts, client.InNamespace(cd.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the installs of cluster %s: %w", cd.Name, err)
	}
	slices.SortFunc(attempts.Items, func(x, y hivev1.ClusterProvision) int { return x.Spec.Attempt - y.Spec.Attempt })
	n := 0
	for _, p := range attempts.Items {
		if p.Spec.ClusterDeploymentRef.Name != cd.Name || p.Spec.InstallLog == nil || *p.Spec.InstallLog == "" {
			continue
		}
		n++
		if err := a.writeLogTail(fmt.Sprintf("failed attempt %d", p.Spec.Attempt), []byte(*p.Spec.InstallLog), q); err != nil {
			return n, err
		}
	}
	pods, err := a.printPodLogs(ctx, h, cd, q)
	return n + pods, err
}

// printPodLogs prints the logs of the pods that run, or ran, the cluster's installer.
func (a commands) printPodLogs(ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, q *logOptions) (int, error) {
	if cd.Spec.Platform.Local != nil {
		return 0, nil // local installs have no pods
	}
	var pods corev1.PodList
	if err := h.List(ctx, &pods, client.InNamespace(cd.Namespace), client.HasLabels{hivev1.LabelInstaller}); err != nil {
		return 0, fmt.Errorf("listing the pods of the installer: %w", err)
	}
	for _, p := range pods.Items {
		if err := a.printPodLog(ctx, h, &p, q); err != nil {
			return 0, err
		}
	}
	return len(pods.Items), nil
}

// printPodLog prints the log of a pod: from a file if hotspare up ran the pod, else from the
// kubelet.
func (a commands) printPodLog(ctx context.Context, h *base.Hub, p *corev1.Pod, q *logOptions) error {
	file := filepath.Join(base.ResolveDataDir(a.Flags.DataDir), "pods", p.Name, "log")
	if _, err := os.Stat(file); err == nil {
		return a.printLogFile(logFile{"pod " + p.Name, file}, q)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		raw, err := h.FetchPodLog(ctx, p.Namespace, p.Name, c.Name, q.tail)
		if err != nil { // a container that has not started has no log; continue with the others
			raw = fmt.Appendf(nil, "no log: %v\n", err)
		}
		if err := a.writeLogTail("pod "+p.Name+", "+c.Name, raw, q); err != nil {
			return err
		}
	}
	return nil
}
