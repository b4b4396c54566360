package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/console/localauth"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/up"
	"hotspare.io/hotspare/internal/up/containersrecord"
	"hotspare.io/hotspare/internal/up/runrecord"
	"hotspare.io/hotspare/internal/version"
)

const upLong = `Start hotspare on this machine: a Kubernetes API with pools, claims and clusters, the
controllers, and a platform that creates real clusters from local processes.

hotspare stores all data in the data folder and restores it at the next start. Press
Ctrl-C, or run "hotspare down" in another terminal, to stop everything that it started.

After a successful start, the next start on the same data folder uses these flags again,
and prints them: --additional-certificate-authorities, --authentication-config,
--containers, --diagnostics, --global-pull-secret, --image-cache-size,
--insecure-registries, --installer and --recipes. To reset one of them, give it its
default, as in --recipes="" or --containers=true.`

// upFlags are the texts of flags that must be parsed.
type upFlags struct {
	pullSecret, imageCacheSize, diagnostics string
	authorities                             []string
}

// read completes the flags with those of earlier starts, and returns the names of those on the command
// line.
func (f *upFlags) read(cmd *cobra.Command, o *up.Options) (given []string, err error) {
	set := cmd.Flags()
	given = listGiven(set)
	if err := readContainersVariable(set); err != nil {
		return nil, err
	}
	kept, err := up.ReadFlags(o.Dir)
	if err != nil {
		return nil, err
	}
	applied, err := applyKept(set, kept)
	if err != nil {
		return nil, err
	}
	printKept(cmd.OutOrStdout(), set, applied)
	if err := f.complete(o); err != nil {
		return nil, err
	}
	o.Flags = planKept(set, kept, given)
	return given, nil
}

// complete parses the texts, checks the flags, and resolves the paths.
func (f *upFlags) complete(o *up.Options) error {
	err := errors.Join(metrics.CheckAddress(o.MetricsAddress), localauth.CheckAddress(o.ConsoleAddress))
	if err != nil {
		return err
	}
	if o.Installer, err = resolveInstaller(o.Installer); err != nil {
		return err
	}
	if o.Recipes, err = resolveRecipes(o.Recipes); err != nil {
		return err
	}
	if o.AuthenticationConfig, err = resolveAuthenticationConfig(o.AuthenticationConfig); err != nil {
		return err
	}
	if o.GlobalPullSecret, err = manager.ParseSecretName(f.pullSecret); err != nil {
		return fmt.Errorf("--global-pull-secret %w", err)
	}
	if o.CertificateAuthorities, err = manager.ParseSecretNames(f.authorities); err != nil {
		return fmt.Errorf("--additional-certificate-authorities %w", err)
	}
	if o.ImageCacheSize, err = up.ParseImageCacheSize(f.imageCacheSize); err != nil {
		return fmt.Errorf("--image-cache-size: %w", err)
	}
	if f.diagnostics != "" {
		place, err := manager.ParseDiagnosticsPlace(f.diagnostics)
		if err != nil {
			return fmt.Errorf("--diagnostics: %w", err)
		}
		o.Diagnostics = &place
		if place.Folder != "" {
			f.diagnostics = place.Folder // the next start may be in another folder
		}
	}
	if err := up.CheckRegistries(o.InsecureRegistries); err != nil {
		return fmt.Errorf("--insecure-registries: %w", err)
	}
	return nil
}

func upCommand() *cobra.Command {
	var o up.Options
	var detach, untilEOF bool
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start hotspare on this machine",
		Long:  upLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Dir = base.DataDir(cmd)
			printLastRun(cmd.OutOrStdout(), o.Dir)
			given, err := flags.read(cmd, &o)
			if err != nil {
				return base.NewUsageError(err)
			}
			if detach {
				return startDetached(cmd, o, readFlags(cmd.Flags(), given))
			}
			if untilEOF {
				endWithInput(cmd)
			}
			return runInForeground(cmd, o)
		},
	}
	addServingFlags(cmd.Flags(), &o)
	addImageFlags(cmd.Flags(), &o, &flags.imageCacheSize)
	cmd.Flags().StringVar(&o.Installer, "installer", "",
		"`path` of an openshift-install to install clusters on clouds, run as processes on this machine (default: local clusters only)")
	cmd.Flags().StringVar(&o.Recipes, "recipes", "",
		"`folder` with the recipes of platform exec (default: the recipes that hotspare ships, in the data folder)")
	cmd.Flags().StringVar(&flags.pullSecret, "global-pull-secret", "",
		"Secret, as `namespace/name`, with registry credentials for all clusters; a cluster's own pull secret takes precedence (default: none)")
	cmd.Flags().StringSliceVar(&flags.authorities, "additional-certificate-authorities", nil,
		"Secrets, as `namespace/name`, with CA certificates in key ca.crt that installers, and hotspare when it calls platforms and clusters, "+
			"trust in addition to those of the system; may be repeated (default: none)")
	cmd.Flags().StringVar(&flags.diagnostics, "diagnostics", "",
		"`folder`, or bucket such as s3://bucket/prefix?region=eu-west-1, for bundles of diagnostics of failed and released clusters; "+
			"kept for 7 days, and up to 1 GiB (default: folder diagnostics in the data folder)")
	cmd.Flags().BoolVar(&o.HubOnly, "hub-only", false, "start only the API, without controllers and local clusters: for hotspare-manager, or to inspect the data")
	cmd.Flags().BoolVar(&detach, "detach", false, "return when hotspare is ready, and keep it running in the background")
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "stop when standard input is closed")
	mustSucceed(cmd.Flags().MarkHidden("until-eof"))
	return cmd
}

// printLastRun prints how the last hotspare up on a data folder has ended, unless it was stopped.
func printLastRun(out io.Writer, dir string) {
	if last, found := runrecord.Read(dir); found && last.IsFailed() {
		fmt.Fprintf(out, "the last run: %s\n", last.Describe(time.Now()))
	}
}

// addServingFlags adds the flags of the addresses, and of what local clusters serve.
func addServingFlags(flags *pflag.FlagSet, o *up.Options) {
	flags.IntVar(&o.Port, "port", 0, "port of the API on 127.0.0.1 (default: the last used port, else any free port)")
	flags.StringVar(&o.AuthenticationConfig, "authentication-config", "",
		"`path` of an AuthenticationConfiguration with the OIDC issuers whose tokens the API accepts, such as those of CI systems; "+
			"changes to the file take effect without a restart (default: none)")
	flags.StringVar(&o.MetricsAddress, "metrics-address", "127.0.0.1:0",
		"loopback `address` that serves /metrics; port 0 selects the last used port, else any free port; 0 disables metrics")
	flags.StringVar(&o.ConsoleAddress, "console-address", "127.0.0.1:0",
		"loopback `address` that serves the console; port 0 selects the last used port, else any free port; 0 disables the console")
	flags.BoolVar(&o.Containers, "containers", true,
		"let workers of local clusters run containers, if this machine can: see hotspare doctor; $HOTSPARE_CONTAINERS replaces the default")
}

// addImageFlags adds the flags of the images that local clusters pull.
func addImageFlags(flags *pflag.FlagSet, o *up.Options, size *string) {
	flags.StringVar(size, "image-cache-size", "",
		"how much of the disk to use to keep images that local clusters pull, as in 20G; 0 keeps none (default: a tenth of the disk, at most 20G)")
	flags.StringSliceVar(&o.InsecureRegistries, "insecure-registries", nil,
		"registries, as `host:port`, from which local clusters may pull over plain HTTP, including at loopback and link-local addresses; may be repeated (default: none)")
}

// containersVariable is the environment variable that replaces the default of the flag --containers.
const containersVariable = "HOTSPARE_CONTAINERS"

// readContainersVariable sets the flag --containers to the value of its environment variable, unless the flag
// was given or the value is empty.
func readContainersVariable(flags *pflag.FlagSet) error {
	value := os.Getenv(containersVariable)
	if value == "" || flags.Changed("containers") {
		return nil
	}
	if err := flags.Set("containers", value); err != nil {
		return fmt.Errorf("$%s: %w", containersVariable, err)
	}
	return nil
}

// endWithInput ends the command's context when its standard input ends.
func endWithInput(cmd *cobra.Command) {
	ctx, cancel := context.WithCancel(cmd.Context())
	cmd.SetContext(ctx)
	in := cmd.InOrStdin()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error ends the input too
		cancel()
	}()
}

// mustSucceed panics on an error. Use it for calls that fail only because of a programming error.
func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

// resolveInstaller returns the absolute path of an executable program; "" for an empty path.
func resolveInstaller(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("--installer: %w: specify the path of an openshift-install", err)
	}
	return filepath.Abs(found)
}

// resolveRecipes returns the absolute path of a folder; "" for an empty path.
func resolveRecipes(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", path)
	}
	if err != nil {
		return "", fmt.Errorf("--recipes: %w: specify a folder that contains one folder for each recipe", err)
	}
	return filepath.Abs(path)
}

// resolveAuthenticationConfig returns the absolute path of a file that can be read; "" for an empty path.
func resolveAuthenticationConfig(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if _, err := os.ReadFile(path); err != nil {
		return "", fmt.Errorf("--authentication-config: %w: specify a file with an AuthenticationConfiguration", err)
	}
	return filepath.Abs(path)
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

// printNextCommands prints whether pods are simulated, and commands to try next, with the name by which
// this program was run. alike is set if the next terminal finds the data folder in the same way.
func printNextCommands(out io.Writer, o up.Options, heading string, alike bool) {
	self, dir := remedy.QuoteForShell(os.Args[0]), o.Dir
	if o.HubOnly {
		fmt.Fprintf(out, "kubeconfig: %s\n\nNext, in another terminal:\n  hotspare-manager --kubeconfig %s\n",
			absolutePath(up.KubeconfigPath(dir)), remedy.QuoteForShell(absolutePath(up.ManagerKubeconfigPath(dir))))
		return
	}
	found := fmt.Sprintf("  export HOTSPARE_DATA_DIR=%s\n", remedy.QuoteForShell(absolutePath(dir)))
	if alike && base.DefaultDataDir() == dir {
		found = ""
	}
	if containers, found := containersrecord.Read(dir); found {
		fmt.Fprintf(out, "containers: %s\n", containers)
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

// absolutePath returns dir as an absolute path, which is valid in any terminal.
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
		Long: `Stop the hotspare that is running on the data folder, and the local clusters that it
started. The data is kept. Clusters of recipes are not stopped: hibernate or delete
them first if they must not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := base.DataDir(cmd)
			running, err := up.Down(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if !running {
				fmt.Fprintf(cmd.OutOrStdout(), "hotspare is not running on %s\n", dir)
				printLastRun(cmd.OutOrStdout(), dir)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "stopped; the data stays in %s\n", dir)
			n, err := up.CountRecipeClusters(dir)
			if err == nil && n > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "clusters of recipes that still exist, and may be running: %d. The next 'hotspare up' manages them again.\n", n)
			}
			return err
		},
	}
}
