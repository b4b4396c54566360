package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/install/job/state"
)

// Host is the environment in which a pod runs.
type Host struct {
	// Connect returns a client for the hub, configured by the files in a folder.
	Connect func(dir string) (state.API, error)
	// Env is the environment.
	Env []string
	// ParentPipe stops the run when it is closed; nil: nothing stops it.
	ParentPipe io.Reader
	// Grace, Beat and Lapse are those of Options.
	Grace, HeartbeatInterval, HeartbeatTimeout time.Duration
}

// parentPipe is set in the environment of a pod that runs as a process of hotspare up. The pod then
// ends when its standard input is closed.
const parentPipe = "HOTSPARE_PARENT_PIPE=1"

// CurrentHost returns the Host of this process.
func CurrentHost() Host {
	h := Host{Connect: ConnectToHub, Env: os.Environ()}
	for _, e := range h.Env {
		if e == parentPipe {
			h.ParentPipe = os.Stdin
		}
	}
	return h
}

// NewCommand returns the command `hotspare install-manager`. Jobs run it, not people.
func NewCommand(h Host) *cobra.Command {
	cmd := &cobra.Command{Use: "install-manager", Short: "Run an installer in a pod on the hub", Hidden: true}
	cmd.AddCommand(
		h.newVerbCommand("prepare", "Prepare an install", PrepareInstall),
		h.newVerbCommand("create", "Create the cluster", CreateCluster),
		h.newVerbCommand("destroy", "Destroy the cluster", DestroyCluster),
		h.newResolveCommand(), newCopyCommand(),
	)
	return cmd
}

// flags are the flags of all verbs.
type flags struct {
	Options
	hub string
}

func (h Host) addFlags(cmd *cobra.Command, f *flags) {
	set := cmd.Flags()
	set.StringVar(&f.Store.Key.Namespace, "namespace", "", "the cluster's namespace")
	set.StringVar(&f.Store.Key.Name, "state", "", "the Secret with the state of the attempt")
	set.StringVar(&f.hub, "hub", "", "the folder with the hub's credentials")
	set.StringVar(&f.Work, "work", "", "an empty working folder")
	set.StringVar(&f.Installer, "installer", "", "path of openshift-install; default: from the search path")
	set.StringVar(&f.Credentials, "credentials", "", "the folder with the platform's credentials")
	set.StringArrayVar(&f.Manifests, "manifests", nil, "the folder with manifests to add")
	set.StringVar(&f.SSHKey, "ssh-key", "", "the private key for the bootstrap machine")
	set.DurationVar(&f.Limit, "limit", 0, "how long the installer may take")
}

// completeOptions fills in the options that do not come from flags.
func (h Host) completeOptions(f *flags, out io.Writer) error {
	for name, value := range map[string]string{"namespace": f.Store.Key.Namespace, "state": f.Store.Key.Name, "hub": f.hub, "work": f.Work} {
		if value == "" {
			return fmt.Errorf("--%s is missing", name)
		}
	}
	api, err := h.Connect(f.hub)
	f.Store.API, f.Out = api, out
	f.Grace, f.HeartbeatInterval, f.HeartbeatTimeout = h.Grace, h.HeartbeatInterval, h.HeartbeatTimeout
	for _, e := range h.Env {
		switch {
		case strings.HasPrefix(e, "HOTSPARE_POD="):
			f.Pod = strings.TrimPrefix(e, "HOTSPARE_POD=")
		case strings.HasPrefix(e, "HOTSPARE_"), strings.HasPrefix(e, "KUBERNETES_"):
			// The installer must not have access to the hub.
		default:
			f.Env = append(f.Env, e)
		}
	}
	return err
}

func (h Host) newVerbCommand(name, short string, do func(context.Context, Options) error) *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, SilenceUsage: true}
	h.addFlags(cmd, &f)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return h.runCommand(cmd, &f, func(ctx context.Context) error { return do(ctx, f.Options) })
	}
	return cmd
}

func (h Host) newResolveCommand() *cobra.Command {
	var f flags
	var from string
	cmd := &cobra.Command{Use: "resolve", Short: "Look up the installer in the release image", Args: cobra.NoArgs, SilenceUsage: true}
	h.addFlags(cmd, &f)
	cmd.Flags().StringVar(&from, "from", References, "the file that names the release's images")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return h.runCommand(cmd, &f, func(ctx context.Context) error { return ResolveImages(ctx, f.Options, from) })
	}
	return cmd
}

func (h Host) runCommand(cmd *cobra.Command, f *flags, do func(context.Context) error) (err error) {
	if err := h.completeOptions(f, cmd.OutOrStdout()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if h.ParentPipe != nil {
		lock, err := flock.Acquire(LockPath(f.Work))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
		go func() {
			_, _ = io.Copy(io.Discard, h.ParentPipe) // however reading ends, the parent has exited
			cancel()
		}()
	}
	return do(ctx)
}

// LockPath is the path of the lock file in the work folder. A pod that is a process keeps it locked
// while it runs.
func LockPath(work string) string { return filepath.Join(work, "lock") }

// newCopyCommand returns the command that copies this program into a pod of another image.
func newCopyCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "copy", Short: "Copy this program", Args: cobra.NoArgs, SilenceUsage: true}
	cmd.Flags().StringVar(&to, "to", "", "the destination folder")
	cmd.RunE = func(*cobra.Command, []string) error {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		from, err := os.Open(self)
		if err != nil {
			return fmt.Errorf("copying this program: %w", err)
		}
		defer from.Close()                                                     //nolint:errcheck // it was opened for reading only
		out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // a program that another user runs
		if err != nil {
			return fmt.Errorf("copying this program: %w", err)
		}
		_, err = io.Copy(out, from)
		if err := errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("copying this program: %w", err)
		}
		return nil
	}
	return cmd
}

// ConnectToHub returns a client for the hub that uses the token and the CA in a folder of the pod.
func ConnectToHub(dir string) (state.API, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is empty: this program runs in a pod of the hub")
	}
	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerTokenFile: filepath.Join(dir, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "ca.crt")},
	}
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		return nil, err
	}
	// The client reads only Secrets, so it needs no discovery of the hub's other kinds.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: s, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return c, nil
}
