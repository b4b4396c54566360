package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/platform"
)

// flags are the flags of the command. The name and namespace of the pod come from its environment.
type flags struct {
	kubeconfig string

	elect     bool
	namespace string

	health, metrics, certificates string

	console, consoleCertificates string
	consoleHosts                 []string

	platforms     []string
	image         string
	installer     string
	installerUser int64
	pullSecret    string
	authorities   []string

	agent, server, authority string

	diagnostics string

	format    string
	verbosity int
}

// The environment of a pod: see the chart.
const (
	podNamespace = "POD_NAMESPACE"
	podName      = "POD_NAME"
)

// defaultNamespace is the namespace of a manager that runs outside of pods.
const defaultNamespace = "hotspare-system"

// off is the address that disables a listener.
const off = "0"

// anyUser lets the hub or the image select the user of installers' pods.
const anyUser = -1

func (f *flags) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the hub (default: $KUBECONFIG, else the cluster in which the manager runs)")
	set.BoolVar(&f.elect, "leader-elect", true, "elect one replica as the leader; if false, this replica always acts, even if others do")
	set.StringVar(&f.namespace, "leader-elect-namespace", cmp.Or(os.Getenv(podNamespace), defaultNamespace), "`namespace` of the Lease hotspare-manager")
	set.StringVar(&f.health, "health-bind-address", ":8081", "`address` that serves /healthz and /readyz; 0 disables probes")
	set.StringVar(&f.metrics, "metrics-bind-address", ":8443",
		"`address` that serves /metrics by https to clients that the hub authorizes; 0 disables metrics")
	set.StringVar(&f.certificates, "metrics-cert-dir", "",
		"`folder` with tls.crt and tls.key for metrics, reloaded when they change (default: a self-signed certificate, created at start)")
	set.StringVar(&f.console, "console-bind-address", off, "`address` that serves the console by https to users with a token of the hub; 0 disables the console")
	set.StringVar(&f.consoleCertificates, "console-cert-dir", "",
		"`folder` with tls.crt and tls.key for the console, reloaded when they change (default: a self-signed certificate, created at start)")
	set.StringSliceVar(&f.consoleHosts, "console-host", nil,
		"host `name` under which browsers reach the console; may be repeated (default: only the names of this computer)")
	set.StringSliceVar(&f.platforms, "platforms", nil, "platforms to support (default: all): "+strings.Join(platform.Names(), ","))
	set.StringVar(&f.image, "image", "",
		"`image` with this program, for Jobs that install clusters (default: the image of container manager of pod $POD_NAME; without an image, no clusters are installed)")
	set.StringVar(&f.installer, "installer-image", "", "`image` with the openshift-install for all clusters (default: the image of each cluster's release)")
	set.Int64Var(&f.installerUser, "installer-user", anyUser, "`uid` of the pods of installers and recipes (default: selected by the hub or the image)")
	set.StringVar(&f.pullSecret, "global-pull-secret", "",
		"Secret, as `namespace/name`, with registry credentials for all clusters; a cluster's own pull secret takes precedence (default: none)")
	set.StringSliceVar(&f.authorities, "additional-certificate-authorities", nil,
		"Secrets, as `namespace/name`, with CA certificates in key ca.crt that installers, and this program when it calls platforms and clusters, "+
			"trust in addition to those of the system; may be repeated (default: none)")
	set.StringVar(&f.agent, "agent-image", "", "`image` with hotspare in its PATH, for agents on data planes (default: no agents are installed)")
	set.StringVar(&f.server, "hub-server", "", "`URL` under which data planes reach the hub; required with --agent-image")
	set.StringVar(&f.authority, "hub-ca", "", "`file` with the CA certificate of --hub-server (default: the CA that this program uses for the hub)")
	set.StringVar(&f.diagnostics, "diagnostics", "",
		"`folder`, or bucket such as s3://bucket/prefix?region=eu-west-1, for bundles of diagnostics of failed and released clusters; "+
			"kept for 7 days, and up to 1 GiB (default: none are collected)")
	set.StringVar(&f.format, "log-format", "text", "log format: text or json")
	set.IntVarP(&f.verbosity, "verbosity", "v", 0, "log level: 0 events, 1 decisions, 2 details")
}

// ownNamespace returns the namespace of hotspare: that of its pod, or else that of its Lease.
func (f *flags) ownNamespace() string {
	return cmp.Or(os.Getenv(podNamespace), f.namespace, defaultNamespace)
}

// validate returns the errors in the flags.
func (f *flags) validate() error {
	var errs []error
	if err := platform.CheckNames(f.platforms); err != nil {
		errs = append(errs, fmt.Errorf("--platforms: %w", err))
	}
	errs = append(errs, f.validateAddresses(), f.validateAgentFlags())
	if f.elect && f.namespace == "" {
		errs = append(errs, errors.New("--leader-elect-namespace is empty: name the namespace of the Lease"))
	}
	if f.installerUser < anyUser || f.installerUser == 0 {
		errs = append(errs, fmt.Errorf("--installer-user is %d: give the uid of a user other than root", f.installerUser))
	}
	if _, err := manager.ParseSecretName(f.pullSecret); err != nil {
		errs = append(errs, fmt.Errorf("--global-pull-secret %w", err))
	}
	if _, err := manager.ParseSecretNames(f.authorities); err != nil {
		errs = append(errs, fmt.Errorf("--additional-certificate-authorities %w", err))
	}
	if f.diagnostics != "" {
		if _, err := manager.ParseDiagnosticsPlace(f.diagnostics); err != nil {
			errs = append(errs, fmt.Errorf("--diagnostics: %w", err))
		}
	}
	if f.format != "text" && f.format != "json" {
		errs = append(errs, fmt.Errorf("--log-format is %q: choose text or json", f.format))
	}
	if f.verbosity < 0 {
		errs = append(errs, fmt.Errorf("--verbosity is %d: give 0 or more", f.verbosity))
	}
	return errors.Join(errs...)
}

// validateAddresses returns the errors in the listen addresses and the console's host names.
func (f *flags) validateAddresses() error {
	var errs []error
	for flag, address := range map[string]string{"health": f.health, "metrics": f.metrics, "console": f.console} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != off {
			errs = append(errs, fmt.Errorf("--%s-bind-address %q is not an address: specify one with a port, such as 127.0.0.1:8081, or 0 for none", flag, address))
		}
	}
	for _, host := range f.consoleHosts {
		if u, err := url.Parse("https://" + host + "/"); err != nil || u.Host != host || u.Port() != "" || host == "" {
			errs = append(errs, fmt.Errorf("--console-host %q is not a host name: specify one without scheme and port, such as hotspare.example.com", host))
		}
	}
	return errors.Join(errs...)
}

// validateAgentFlags returns the errors in the flags for the agents of data planes.
func (f *flags) validateAgentFlags() error {
	var errs []error
	if u, err := url.Parse(f.server); f.server != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		errs = append(errs, fmt.Errorf("--hub-server %q is not the address of an API: specify one such as https://hub.example.com:6443", f.server))
	}
	if f.agent != "" && f.server == "" {
		errs = append(errs, errors.New("--agent-image requires --hub-server: specify the URL under which data planes reach the hub"))
	}
	return errors.Join(errs...)
}
