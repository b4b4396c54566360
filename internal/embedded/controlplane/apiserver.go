package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"hotspare.io/hotspare/internal/embedded/controlplane/lazyopenapi"
	"hotspare.io/hotspare/internal/embedded/controlplane/loopbacktoken"
	"hotspare.io/hotspare/internal/embedded/controlplane/requestcounter"
	"hotspare.io/hotspare/internal/embedded/controlplane/resourcemetrics"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// ServiceNetwork is the range of cluster IPs, and serviceIP its first address, at which pods reach
// the API. The range is OpenShift's default.
const (
	ServiceNetwork = "172.30.0.0/16"
	serviceIP      = "172.30.0.1"
)

// serverNames are the names and addresses in the API server's certificate.
var serverNames = []string{
	"127.0.0.1", "localhost", serviceIP,
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// runAPIServer serves the API until ctx ends, and then waits until running requests have finished.
//
// It does what kube-apiserver's app.Run does, except that it reports another version and also
// authenticates clients by their tokens. The cobra command cannot be used: it always handles the
// process's signals.
func runAPIServer(ctx context.Context, o Options, f files, etcdURL string, clients *loopbacktoken.Authenticator) error {
	egress, err := startEgress(ctx, f, o.DialCluster)
	if err != nil {
		return err
	}
	defer egress.close()
	completed, err := apiServerOptions(ctx, o, f, etcdURL)
	if err != nil {
		return err
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	for _, c := range []*genericapiserver.Config{
		&config.Aggregator.GenericConfig.Config,
		config.KubeAPIs.ControlPlane.Generic,
		&config.ApiExtensions.GenericConfig.Config,
	} {
		c.EffectiveVersion = releaseVersion{c.EffectiveVersion}
		if o.Requests != nil {
			c.Authentication.Authenticator = o.Requests.WrapAuthenticator(c.Authentication.Authenticator)
		}
		c.Authentication.Authenticator = clients.WrapAuthenticator(c.Authentication.Authenticator)
	}
	if o.Requests != nil {
		countRequests(&config.Aggregator.GenericConfig.Config, o.Requests)
	}
	if custom := config.ApiExtensions.GenericConfig; o.Untracked != nil {
		custom.AdmissionControl = untrackedAdmission{custom.AdmissionControl, o.Untracked}
	}
	if generic := config.KubeAPIs.ControlPlane.Generic; o.IsMeasured != nil {
		resourcemetrics.DescribeKinds(generic.OpenAPIConfig, generic.OpenAPIV3Config)
	}
	config.KubeAPIs.ControlPlane.Generic.SkipOpenAPIInstallation = true // package lazyopenapi serves the documents
	complete, err := config.Complete()
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	chain, err := app.CreateServerChain(complete)
	if err != nil {
		return fmt.Errorf("creating servers: %w", err)
	}
	kubernetesAPIs, ok := chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
	if !ok {
		return fmt.Errorf("creating servers: the aggregator delegates to a %T", chain.GenericAPIServer.NextDelegate())
	}
	if err := addResourceMetrics(chain.GenericAPIServer, kubernetesAPIs, f, o); err != nil { // it runs as long as the server
		return err
	}
	generic := complete.KubeAPIs.ControlPlane.Generic
	lazyopenapi.Install(kubernetesAPIs, generic.OpenAPIConfig, generic.OpenAPIV3Config)
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	return prepared.Run(ctx)
}

// countRequests counts the requests to the aggregator, by which all requests come.
func countRequests(aggregator *genericapiserver.Config, requests *requestcounter.Counter) {
	build := aggregator.BuildHandlerChainFunc
	aggregator.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return requests.WrapHandler(build(requests.ServeReport(api), c))
	}
}

func apiServerOptions(ctx context.Context, wanted Options, f files, etcdURL string) (options.CompletedOptions, error) {
	o := options.NewServerRunOptions()
	if len(wanted.MutatedGroups) > 0 {
		o.Admission.GenericAdmission.Plugins = admissionPlugins(wanted.MutatedGroups)
	}
	flags := apiServerFlags(f, etcdURL)
	if wanted.DialCluster != nil {
		flags = append(flags, egressFlags(f)...)
	}
	if wanted.AuthenticationConfig != "" {
		flags = append(flags, "--authentication-config="+wanted.AuthenticationConfig)
	}
	if err := parseComponentFlags(o.Flags(), flags); err != nil {
		return options.CompletedOptions{}, err
	}
	o.SecureServing.Listener = wanted.Listener
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("setting feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("completing options: %w", err)
	}
	return completed, joinValidationErrors(completed.Validate())
}

func apiServerFlags(f files, etcdURL string) []string {
	flags := []string{
		"--etcd-servers=" + etcdURL,
		// The endpoints of service "kubernetes" must not be on the loopback interface; without an
		// address, the API server would look up the computer's default route.
		"--advertise-address=127.0.0.1",
		"--bind-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + ServiceNetwork,
		"--allow-privileged=true",
		"--profiling=false",
		// The history of lists that this feature keeps costs a hub of 2,000 clusters 70 MB. Without it, the pages of a long list are read from
		// the store, in this process.
		"--feature-gates=ListFromCacheSnapshot=false",
		// Without this flag, a stop waits a minute for watches, which never end on their own.
		"--shutdown-send-retry-after=true",

		"--tls-cert-file=" + f.certificatePath(serverFile),
		"--tls-private-key-file=" + f.privateKeyPath(serverFile),
		"--client-ca-file=" + f.clusterCAPath(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",

		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki.ServiceAccountKeyPath(f.pki),
		"--service-account-signing-key-file=" + pki.ServiceAccountKeyPath(f.pki),

		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + f.clusterCAPath(),
		"--kubelet-client-certificate=" + f.certificatePath(kubeletClientFile),
		"--kubelet-client-key=" + f.privateKeyPath(kubeletClientFile),

		"--proxy-client-cert-file=" + f.certificatePath(frontProxyFile),
		"--proxy-client-key-file=" + f.privateKeyPath(frontProxyFile),
		"--requestheader-client-ca-file=" + f.frontProxyCAPath(),
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	if tokens := pki.TokenFilePath(f.pki); fileExists(tokens) {
		flags = append(flags, "--token-auth-file="+tokens)
	}
	return flags
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
