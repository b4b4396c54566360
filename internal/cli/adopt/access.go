package adopt

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterAccess is a kubeconfig that the hub can use.
type clusterAccess struct {
	// Kubeconfig contains only the current context of the file: access to other clusters stays where it
	// is.
	Kubeconfig []byte
	// Server is the URL of the cluster's API server.
	Server string
	// Expires is when the credentials expire; zero if they do not, or if that is unknown.
	Expires time.Time
	// Insecure is set if the server's certificate is not verified.
	Insecure bool
}

const flattenRemedy = "write the content of the files into the kubeconfig with: kubectl config view --raw --minify --flatten"

// parseAccess reads a kubeconfig and checks that the hub can use its current context. Errors name the
// entry and the remedy and do not quote credentials. source says where raw comes from.
func parseAccess(raw []byte, source string, now time.Time) (clusterAccess, error) {
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Clusters) == 0 {
		return clusterAccess{}, fmt.Errorf("%s is not a kubeconfig: specify a kubeconfig of the cluster's administrator", source)
	}
	if config.CurrentContext == "" {
		return clusterAccess{}, fmt.Errorf("%s has no current context: select one with: kubectl config use-context NAME", source)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return clusterAccess{}, fmt.Errorf("%s: context %q is missing or incomplete: add the context, its cluster and its user to the file", source, config.CurrentContext)
	}
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return clusterAccess{}, fmt.Errorf("%s: context %q names cluster %q and user %q, and the file does not have both: add the missing entry",
			source, config.CurrentContext, context.Cluster, context.AuthInfo)
	}
	if err := errors.Join(checkServer(cluster, context.Cluster), checkUser(user, context.AuthInfo)); err != nil {
		return clusterAccess{}, fmt.Errorf("%s: %w", source, err)
	}
	out := clusterAccess{Server: cluster.Server, Expires: expiryOf(user), Insecure: cluster.InsecureSkipTLSVerify}
	if !out.Expires.IsZero() && !now.Before(out.Expires) {
		return clusterAccess{}, fmt.Errorf("%s: the credentials of user entry %q expired at %s: get a new kubeconfig of the cluster",
			source, context.AuthInfo, out.Expires.UTC().Format(time.RFC3339))
	}
	if out.Kubeconfig, err = clientcmd.Write(*config); err != nil {
		return clusterAccess{}, fmt.Errorf("%s: writing the current context: %w", source, err)
	}
	return out, nil
}

func checkServer(c *clientcmdapi.Cluster, name string) error {
	if u, err := url.Parse(c.Server); err != nil || u.Host == "" {
		return fmt.Errorf("cluster entry %q has no URL of an API server: set its field server", name)
	}
	if c.CertificateAuthority != "" {
		return fmt.Errorf("cluster entry %q reads a file (certificate-authority), which the hub does not have: %s", name, flattenRemedy)
	}
	return nil
}

// checkUser refuses credentials that would run a program or read a file on the hub, as package remote
// does.
func checkUser(u *clientcmdapi.AuthInfo, name string) error {
	const serviceAccount = "use a token of a ServiceAccount that is bound to ClusterRole cluster-admin, or a client certificate"
	switch {
	case u.Exec != nil:
		return fmt.Errorf("user entry %q runs a program (exec) to get credentials, which the hub does not do: %s", name, serviceAccount)
	case u.AuthProvider != nil:
		return fmt.Errorf("user entry %q uses a plugin (auth-provider) to get credentials, which the hub does not have: %s", name, serviceAccount)
	case u.TokenFile != "":
		return fmt.Errorf("user entry %q reads a file (tokenFile), which the hub does not have: write the token into the field token", name)
	case u.ClientCertificate != "" || u.ClientKey != "":
		return fmt.Errorf("user entry %q reads files (client-certificate, client-key), which the hub does not have: %s", name, flattenRemedy)
	case u.Token == "" && len(u.ClientCertificateData) == 0 && u.Username == "":
		return fmt.Errorf("user entry %q has no credentials: %s", name, serviceAccount)
	}
	return nil
}

// expiryOf returns when a client certificate or a token expires, whichever is first; zero if neither
// says so.
func expiryOf(u *clientcmdapi.AuthInfo) time.Time {
	var at time.Time
	if block, _ := pem.Decode(u.ClientCertificateData); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			at = cert.NotAfter
		}
	}
	if exp := tokenExpiry(u.Token); !exp.IsZero() && (at.IsZero() || exp.Before(at)) {
		at = exp
	}
	return at
}

// tokenExpiry returns the claim exp of a JSON Web Token; zero if the token is none or has none.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// serverAddress returns host and port of a URL, to compare two of them; "" if it is not a URL.
func serverAddress(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
