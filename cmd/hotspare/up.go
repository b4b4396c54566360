package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/up"
	"hotspare.io/hotspare/internal/version"
)

const upLong = `Start hotspare on this machine: a Kubernetes API with pools, claims and clusters,
the controllers that keep them, and a platform that makes real clusters from
local processes.

Everything is kept in the data folder and comes back with the next start.
Ctrl-C, or "hotspare down" from elsewhere, stops everything that was started.`

func upCommand() *cobra.Command {
	var o up.Options
	var detach, untilEOF bool
	var pullSecret string
	var authorities []string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start hotspare on this machine",
		Long:  upLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := metrics.CheckAddress(o.MetricsAddress); err != nil {
				return base.NewUsageError(err)
			}
			err := localauth.CheckAddress(o.ConsoleAddress)
			if err != nil {
				return base.NewUsageError(err)
			}
			if o.Installer, err = resolveInstaller(o.Installer); err != nil {
				return base.NewUsageError(err)
			}
			if o.GlobalPullSecret, err = manager.ParseSecretName(pullSecret); err != nil {
				return base.NewUsageError(fmt.Errorf("--global-pull-secret %w", err))
			}
			if o.CertificateAuthorities, err = manager.ParseSecretNames(authorities); err != nil {
				return base.NewUsageError(fmt.Errorf("--additional-certificate-authorities %w", err))
			}
			o.Dir = base.DataDir(cmd)
			if detach {
				return startDetached(cmd, o)
			}
			if untilEOF {
				endWithInput(cmd)
			}
			return runInForeground(cmd, o)
		},
	}
	cmd.Flags().IntVar(&o.Port, "port", 0, "port of the API on 127.0.0.1 (default: the one it had last time, else any that is free)")
	cmd.Flags().StringVar(&o.MetricsAddress, "metrics-address", "127.0.0.1:0",
		"loopback `address` that serves /metrics; port 0 is the one it had last time, else any that is free; 0 serves none")
	cmd.Flags().StringVar(&o.ConsoleAddress, "console-address", "127.0.0.1:0",
		"loopback `address` that serves the console to browsers; port 0 is the one it had last time, else any that is free; 0 serves none")
	cmd.Flags().StringVar(&o.Installer, "installer", "",
		"`path` of an openshift-install that makes clusters on clouds, as processes on this machine (default: only local clusters are made)")
	cmd.Flags().StringVar(&pullSecret, "global-pull-secret", "",
		"Secret, as `namespace/name`, with registries that all clusters get beside those of their own pull secret, which win (default: none)")
	cmd.Flags().StringSliceVar(&authorities, "additional-certificate-authorities", nil,
		"Secrets, as `namespace/name`, with CA certificates in key ca.crt that installers, and hotspare when it calls platforms and clusters, "+
			"trust in addition to those of the system; may be given several times (default: none)")
	cmd.Flags().BoolVar(&o.HubOnly, "hub-only", false, "start the API alone, without controllers and local clusters: for hotspare-manager, or to look at the data")
	cmd.Flags().BoolVar(&detach, "detach", false, "return when it is ready, and let it run in the background")
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "stop when standard input ends: with the program that holds its other end")
	mustSucceed(cmd.Flags().MarkHidden("until-eof"))
	return cmd
}

// endWithInput ends the command's context when its standard input ends.
func endWithInput(cmd *cobra.Command) {
	ctx, cancel := context.WithCancel(cmd.Context())
	cmd.SetContext(ctx)
	in := cmd.InOrStdin()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		cancel()
	}()
}

// mustSucceed is for what can only fail by a mistake in this program.
func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

// resolveInstaller is the absolute path of a program that can be run, or empty.
func resolveInstaller(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("--installer: %w: give the path of an openshift-install", err)
	}
	return filepath.Abs(found)
}

// runInForeground runs hotspare in this process.
func runInForeground(cmd *cobra.Command, o up.Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	out := cmd.OutOrStdout()
	began := time.Now()
	fmt.Fprintf(out, "hotspare %s, data in %s\n", version.Get(), o.Dir)
	o.Machine = []string{self}
	o.Progress = func(step string) { fmt.Fprintf(out, "  %s\n", step) }
	err = up.Run(cmd.Context(), o, func(url string) {
		fmt.Fprintf(out, "ready in %.1fs: %s\n", time.Since(began).Seconds(), url)
		printNextCommands(out, o, "Next, in another terminal:", os.Getenv("HOTSPARE_DATA_DIR") == "" && filepath.IsAbs(o.Dir))
		fmt.Fprintln(out, "\nCtrl-C stops everything; the data stays.")
	})
	if cmd.Context().Err() != nil && err == nil {
		fmt.Fprintln(out, "stopped")
	}
	return err
}

// printNextCommands tells what to type next: this program, as it was called, on this hub. alike says
// that the data folder is looked for there as it is here.
func printNextCommands(out io.Writer, o up.Options, heading string, alike bool) {
	self, dir := os.Args[0], o.Dir
	if o.HubOnly {
		fmt.Fprintf(out, "kubeconfig: %s\n\nNext, in another terminal:\n  hotspare-manager --kubeconfig %s\n",
			absolutePath(up.KubeconfigPath(dir)), absolutePath(up.ManagerKubeconfigPath(dir)))
		return
	}
	found := fmt.Sprintf("  export HOTSPARE_DATA_DIR=%s\n", absolutePath(dir))
	if alike && base.DefaultDataDir() == dir {
		found = ""
	}
	fmt.Fprintf(out, `kubeconfig: %s

%s
%s  %s pool create demo --size 3 --running 1    # three local clusters, one of them running
  %s claim create demo --wait                 # one of them is yours
  %s status
`, up.KubeconfigPath(dir), heading, found, self, self, self)
	if o.ConsoleAddress != "0" && o.ConsoleAddress != "" {
		fmt.Fprintf(out, "  %s console                            # the same in a browser\n", self)
	}
}

// absolutePath is dir from wherever the next terminal is.
func absolutePath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop hotspare on this machine",
		Long:  "Stop the hotspare that runs on the data folder, and everything that it started. The data stays.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := base.DataDir(cmd)
			running, err := up.Down(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if !running {
				fmt.Fprintf(cmd.OutOrStdout(), "hotspare does not run on %s\n", dir)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "stopped; the data stays in %s\n", dir)
			return nil
		},
	}
}
