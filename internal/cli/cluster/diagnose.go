package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/collect"
	"hotspare.io/hotspare/internal/remote"
)

const clusterDiagnoseLong = `Write a bundle of diagnostics of a cluster, to examine it later or to send it to others.
NAME is the name of a claim in the namespace or, failing that, of a cluster.

The bundle is a tar.gz file: a summary, the cluster's objects and events on the hub, the
logs that hotspare cluster logs finds, and, if the cluster's API answers, its nodes, events,
and the pods that are not ready with their logs. The command reads everything with your own
rights, and lists what you may not read. It replaces the values of Secrets and what looks like
a secret by REDACTED. If you may not read all these Secrets, the bundle has no logs and no other
texts unless you set --keep-texts. Check a bundle before you send it to somebody you do not trust.`

// toStdout is the name of the file that stands for standard output.
const toStdout = "-"

// Limits of what diagnose prints and reads.
const (
	summaryLines  = 25   // lines of the summary that are printed
	diagnoseLines = 2000 // lines of each log
)

func (a commands) diagnoseCommand() *cobra.Command {
	var (
		file      string
		keepTexts bool
	)
	cmd := &cobra.Command{
		Use:   "diagnose NAME [-o FILE]",
		Short: "Write what is known about a cluster into a file, without secrets",
		Long:  clusterDiagnoseLong,
		Example: `  hotspare cluster diagnose mine
  hotspare cluster diagnose mine -o - | tar -xzO --wildcards '*/summary.txt'`,
		Args:              base.RequireOneName("cluster or claim"),
		ValidArgsFunction: a.CompleteClusters,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			cd, err := a.FindCluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			if err := a.checkNewFile(file); err != nil {
				return err
			}
			collector := a.newCollector(h)
			collector.KeepTexts = keepTexts
			b, err := collector.Bundle(ctx, cd, "requested with hotspare cluster diagnose", a.Clock.Now())
			if err != nil {
				return fmt.Errorf("collecting diagnostics of cluster %s: %w", cd.Name, err)
			}
			return a.writeBundle(b, file)
		}),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "",
		"`file` to write, with mode 0600; - writes to standard output (default: the name of the cluster and the time, in the current folder)")
	cmd.Flags().BoolVar(&keepTexts, "keep-texts", false,
		"keep logs, events and messages if you may not read all Secrets whose values they may contain; what looks like a secret is still replaced")
	return cmd
}

// checkNewFile returns an error if the file exists, before anything is collected.
func (a commands) checkNewFile(file string) error {
	if file == "" || file == toStdout {
		return nil
	}
	_, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("checking the file to write: %w", err)
	}
	return fileExistsError(file)
}

func fileExistsError(file string) error {
	return base.WithRemedy(fmt.Errorf("file %s exists already, and is not overwritten", file), "delete it, or choose another with -o")
}

// newCollector returns a Collector with the rights of the user.
func (a commands) newCollector(h *base.Hub) *collect.Collector {
	return &collect.Collector{
		Hub:    h,
		Limits: diagnostics.DefaultLimits,
		Connect: func(ctx context.Context, cd *hivev1.ClusterDeployment) (collect.Spoke, func(), string, error) {
			raw, err := h.ReadKubeconfig(ctx, cd)
			if err != nil {
				return nil, nil, "", err
			}
			r, err := remote.NewReader(raw)
			if err != nil {
				return nil, nil, err.Error(), nil //nolint:nilerr // a part that is missing from the bundle
			}
			return r, r.Close, "", nil
		},
		FindLogs: func(ctx context.Context, cd *hivev1.ClusterDeployment) ([]collect.Log, error) {
			var out bytes.Buffer
			there := *a.App
			there.Stdout = &out
			err := commands{&there}.printClusterLogs(ctx, h, cd, &logOptions{tail: diagnoseLines})
			return []collect.Log{{Name: "cluster-logs.txt", Text: out.String()}}, err
		},
	}
}

// writeBundle writes the bundle to a new file, or to standard output, and prints what it has written.
func (a commands) writeBundle(b *diagnostics.Bundle, file string) error {
	if file == toStdout {
		_, err := b.WriteTo(a.Stdout)
		return err
	}
	if file == "" {
		file = b.FolderName() + ".tar.gz"
	}
	size, err := createBundleFile(b, file)
	if errors.Is(err, fs.ErrExist) {
		return fileExistsError(file)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.Stdout, "%s written (%s)\n\n", file, formatSize(size)); err != nil {
		return err
	}
	return printSummary(a.Stdout, string(b.Files()[0].Content))
}

// createBundleFile writes the bundle to a new file, and returns its size. After an error, the file does not exist
// unless it existed before.
func createBundleFile(b *diagnostics.Bundle, file string) (size int64, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("creating the bundle: %w", err)
	}
	size, err = b.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return size, errors.Join(fmt.Errorf("writing %s: %w", file, err), os.Remove(file))
	}
	return size, nil
}

// printSummary prints the first lines of a summary.
func printSummary(w io.Writer, summary string) error {
	lines := strings.SplitAfter(summary, "\n")
	if n := len(lines) - summaryLines; n > 1 {
		lines = append(lines[:summaryLines], fmt.Sprintf("… and %d more lines in %s\n", n-1, diagnostics.SummaryName))
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

// formatSize formats a number of bytes in KiB, rounded up.
func formatSize(bytes int64) string { return fmt.Sprintf("%d KiB", (bytes+1023)/1024) }
