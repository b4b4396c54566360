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

// flags are those of the command. What a pod knows of itself is in its environment.
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

	format    string
	verbosity int
}

// The environment of a pod: see the chart.
const (
	podNamespace = "POD_NAMESPACE"
	podName      = "POD_NAME"
)

// off, as an address, is nowhere.
const off = "0"

// anyUser leaves the user of installers' pods to the hub and the image.
const anyUser = -1

func (f *flags) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` that tells how to reach the hub (default: $KUBECONFIG, else the cluster that this runs in)")
	set.BoolVar(&f.elect, "leader-elect", true, "let replicas agree on one that acts; without it this one acts, whoever else does")
	set.StringVar(&f.namespace, "leader-elect-namespace", cmp.Or(os.Getenv(podNamespace), "hotspare-system"), "`namespace` of the Lease hotspare-manager")
	set.StringVar(&f.health, "health-bind-address", ":8081", "`address` that serves /healthz and /readyz; 0 serves none")
	set.StringVar(&f.metrics, "metrics-bind-address", ":8443",
		"`address` that serves /metrics by https, to whoever the hub lets get it; 0 serves none")
	set.StringVar(&f.certificates, "metrics-cert-dir", "",
		"`folder` with tls.crt and tls.key for metrics, read again when they change (default: made at start, signed by nobody)")
	set.StringVar(&f.console, "console-bind-address", off, "`address` that serves the console by https, to whoever has a token of the hub; 0 serves none")
	set.StringVar(&f.consoleCertificates, "console-cert-dir", "",
		"`folder` with tls.crt and tls.key for the console, read again when they change (default: made at start, signed by nobody)")
	set.StringSliceVar(&f.consoleHosts, "console-host", nil,
		"`name` under which browsers reach the console; may be given several times (default: those of this computer only)")
	set.StringSliceVar(&f.platforms, "platforms", nil, "platforms to work with (default: all): "+strings.Join(platform.Names(), ","))
	set.StringVar(&f.image, "image", "",
		"`image` with this program, for Jobs that make clusters (default: that of container manager of pod $POD_NAME; none: no clusters are made)")
	set.StringVar(&f.installer, "installer-image", "", "`image` with the openshift-install of all clusters (default: that of each cluster's release)")
	set.Int64Var(&f.installerUser, "installer-user", anyUser, "`uid` of installers' pods (default: what the hub or the image chooses)")
	set.StringVar(&f.pullSecret, "global-pull-secret", "",
		"Secret, as `namespace/name`, with registries that all clusters get beside those of their own pull secret, which win (default: none)")
	set.StringSliceVar(&f.authorities, "additional-certificate-authorities", nil,
		"Secrets, as `namespace/name`, with CA certificates in key ca.crt that installers, and this program when it calls platforms and clusters, "+
			"trust in addition to those of the system; may be given several times (default: none)")
	set.StringVar(&f.agent, "agent-image", "", "`image` with hotspare in its path, for agents on data planes (default: none are installed)")
	set.StringVar(&f.server, "hub-server", "", "`URL` of the hub as data planes reach it; needed with --agent-image")
	set.StringVar(&f.authority, "hub-ca", "", "`file` with the certificate that signed that of --hub-server (default: that by which this program knows the hub)")
	set.StringVar(&f.format, "log-format", "text", "text or json")
	set.IntVarP(&f.verbosity, "verbosity", "v", 0, "how much to log: 0 what has happened, 1 decisions, 2 details")
}

// validate says what is wrong with the flags.
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
	if f.format != "text" && f.format != "json" {
		errs = append(errs, fmt.Errorf("--log-format is %q: choose text or json", f.format))
	}
	if f.verbosity < 0 {
		errs = append(errs, fmt.Errorf("--verbosity is %d: give 0 or more", f.verbosity))
	}
	return errors.Join(errs...)
}

// validateAddresses says what is wrong with the addresses to serve on.
func (f *flags) validateAddresses() error {
	var errs []error
	for flag, address := range map[string]string{"health": f.health, "metrics": f.metrics, "console": f.console} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != off {
			errs = append(errs, fmt.Errorf("--%s-bind-address %q is no address: give one with a port, such as 127.0.0.1:8081, or 0 for none", flag, address))
		}
	}
	for _, host := range f.consoleHosts {
		if u, err := url.Parse("https://" + host + "/"); err != nil || u.Host != host || u.Port() != "" || host == "" {
			errs = append(errs, fmt.Errorf("--console-host %q is no name: give one without scheme and port, such as hotspare.example.com", host))
		}
	}
	return errors.Join(errs...)
}

// validateAgentFlags says what is wrong with what agents of data planes are told.
func (f *flags) validateAgentFlags() error {
	var errs []error
	if u, err := url.Parse(f.server); f.server != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		errs = append(errs, fmt.Errorf("--hub-server %q is no address of an API: give one such as https://hub.example.com:6443", f.server))
	}
	if f.agent != "" && f.server == "" {
		errs = append(errs, errors.New("--agent-image without --hub-server: tell agents where the hub is, as data planes reach it"))
	}
	return errors.Join(errs...)
}
