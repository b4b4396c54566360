package openstack

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// secretKey is the Secret key in which Hive and the installer store credentials.
const secretKey = "clouds.yaml"

// section contains the fields of spec.platform.openstack that this package reads.
type section struct {
	Cloud                 string          `json:"cloud"`
	CredentialsSecretRef  secretReference `json:"credentialsSecretRef"`
	CertificatesSecretRef secretReference `json:"certificatesSecretRef"`
}

type secretReference struct {
	Name string `json:"name"`
}

// entry is one cloud of a clouds.yaml, in the format of openstackclient. Files that it may name
// (cacert, cert, key, a profile) exist only on another computer.
type entry struct {
	AuthType     string `json:"auth_type"`
	Auth         auth   `json:"auth"`
	Region       string `json:"region_name"`
	Interface    string `json:"interface"`
	EndpointType string `json:"endpoint_type"`
	Verify       *bool  `json:"verify"`
}

type auth struct {
	URL               string `json:"auth_url"`
	Username          string `json:"username"`
	UserID            string `json:"user_id"`
	Password          string `json:"password"`
	UserDomain        string `json:"user_domain_name"`
	UserDomainID      string `json:"user_domain_id"`
	Project           string `json:"project_name"`
	ProjectID         string `json:"project_id"`
	ProjectDomain     string `json:"project_domain_name"`
	ProjectDomainID   string `json:"project_domain_id"`
	Domain            string `json:"domain_name"`
	DomainID          string `json:"domain_id"`
	Credential        string `json:"application_credential_name"`
	CredentialID      string `json:"application_credential_id"`
	CredentialsSecret string `json:"application_credential_secret"`
}

// identity contains the credentials of a cluster and the cloud to use them with.
type identity struct {
	entry
	cloud           string
	cluster, secret types.NamespacedName
	// roots are PEM certificates to trust in addition to the system's; authorities are those that
	// the hub has for all clusters.
	roots          []byte
	authorities    cabundle.Bundle
	requestTimeout time.Duration
}

// readClusterIdentity reads the credentials of a cluster.
func (a Actuator) readClusterIdentity(ctx context.Context, ref cloud.Ref) (*identity, error) {
	var set section
	if ref.Platform.OpenStack != nil {
		if err := json.Unmarshal(ref.Platform.OpenStack.Raw, &set); err != nil {
			return nil, fault.NewDenied("reading spec.platform.openstack of ClusterDeployment %s: %w", ref.Cluster, err)
		}
	}
	if set.CredentialsSecretRef.Name == "" {
		return nil, fault.NewDenied("ClusterDeployment %s names no credentials: set spec.platform.openstack.credentialsSecretRef.name to a Secret with key %s", ref.Cluster, secretKey)
	}
	who := &identity{cloud: set.Cloud, cluster: ref.Cluster, authorities: a.authorities.LatestBundle(ctx), requestTimeout: a.requestTimeout}
	who.secret = types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: set.CredentialsSecretRef.Name}
	data, err := a.secrets(ctx, who.secret)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	if err := who.readCloudsYAML(data[secretKey]); err != nil {
		return nil, err
	}
	if set.CertificatesSecretRef.Name == "" {
		return who, nil
	}
	who.roots, err = a.readCertificates(ctx, types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: set.CertificatesSecretRef.Name})
	return who, err
}

// readCertificates returns the certificates in all keys of a Secret; the installer accepts any key.
func (a Actuator) readCertificates(ctx context.Context, name types.NamespacedName) ([]byte, error) {
	data, err := a.secrets(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading the cloud's certificates: %w", err)
	}
	var all []byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if x509.NewCertPool().AppendCertsFromPEM(data[key]) {
			all = append(append(all, data[key]...), '\n')
		}
	}
	if len(all) == 0 {
		return nil, fault.NewDenied("Secret %s, named by spec.platform.openstack.certificatesSecretRef, has no PEM certificate in any key: add the CA of the cloud", name)
	}
	return all, nil
}

// readCloudsYAML finds the cluster's cloud in a clouds.yaml. No error contains the file's content:
// the parser's own errors would quote it.
func (i *identity) readCloudsYAML(raw []byte) error {
	if len(raw) == 0 {
		return i.credentialsError("the key is missing or empty")
	}
	var file struct {
		Clouds map[string]entry `json:"clouds"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return i.credentialsError(fmt.Sprintf("%s is a %s, want a %s", wrong.Field, wrong.Value, wrong.Type.Kind()))
		}
		return i.credentialsError("the key is not a clouds.yaml")
	}
	there := strings.Join(slices.Sorted(maps.Keys(file.Clouds)), ", ")
	if i.cloud == "" {
		return fault.NewDenied("spec.platform.openstack.cloud of ClusterDeployment %s is empty: "+
			"set it to one of the clouds in key %s of Secret %s: %s", i.cluster, secretKey, i.secret, there)
	}
	one, ok := file.Clouds[i.cloud]
	if !ok {
		return i.credentialsError(fmt.Sprintf("cloud %q in spec.platform.openstack.cloud of ClusterDeployment %s does not exist; existing clouds: %s", i.cloud, i.cluster, there))
	}
	i.entry = one
	if why := one.validateEntry(); why != "" {
		return i.credentialsError(fmt.Sprintf("cloud %q %s", i.cloud, why))
	}
	return nil
}

// credentialsError returns an error that says where the credentials are, what is wrong and what to
// do.
func (i *identity) credentialsError(why string) error {
	return fault.NewDenied("credentials in Secret %s, key %s: %s: store a clouds.yaml there with an application credential, or a user's password, "+
		"for the project of the cluster's servers", i.secret, secretKey, why)
}

// validateEntry returns what is missing from an entry or not allowed in it; empty if the entry is
// valid.
func (e entry) validateEntry() string {
	a := e.Auth
	u, err := url.Parse(a.URL)
	switch {
	case a.URL == "":
		return "has no auth.auth_url: hotspare reads no profiles of well-known clouds"
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "has an auth.auth_url that is not an HTTP URL"
	case !slices.Contains([]string{"", "password", "v3password", "v3applicationcredential"}, e.AuthType):
		return "has an auth_type that hotspare does not support: use password or v3applicationcredential"
	case !slices.Contains([]string{"public", "internal", "admin"}, e.endpointAvailability()):
		return "has an interface that is not public, internal or admin"
	case e.usesApplicationCredential():
		return a.validateCredential()
	default:
		return a.validatePassword()
	}
}

func (a auth) validateCredential() string {
	switch {
	case a.CredentialsSecret == "":
		return "has no auth.application_credential_secret"
	case a.CredentialID == "" && a.Credential == "":
		return "has no auth.application_credential_id"
	case a.CredentialID == "" && a.UserID == "" && (a.Username == "" || a.userDomain() == domain{}):
		return "has an auth.application_credential_name without its user: set auth.application_credential_id, or auth.username and auth.user_domain_name"
	}
	return ""
}

func (a auth) validatePassword() string {
	switch {
	case a.Password == "":
		return "has neither auth.password nor auth.application_credential_secret"
	case a.Username == "" && a.UserID == "":
		return "has no auth.username"
	case a.UserID == "" && a.userDomain() == domain{}:
		return "has no auth.user_domain_name"
	case a.ProjectID == "" && a.Project == "":
		return "has no auth.project_id or auth.project_name"
	case a.ProjectID == "" && a.projectDomain() == domain{}:
		return "has no auth.project_domain_name"
	}
	return ""
}

func (e entry) usesApplicationCredential() bool {
	return e.AuthType == "v3applicationcredential" || e.AuthType == "" && e.Auth.CredentialsSecret != ""
}

// endpointAvailability returns which of a service's endpoints to use.
func (e entry) endpointAvailability() string {
	return strings.TrimSuffix(cmp.Or(e.Interface, e.EndpointType, "public"), "URL") // publicURL is an older spelling
}

// domain identifies a Keystone domain by ID or by name.
type domain struct{ id, name string }

func (a auth) userDomain() domain {
	return chooseKeystoneDomain(a.UserDomainID, a.UserDomain, a.DomainID, a.Domain)
}

func (a auth) projectDomain() domain {
	return chooseKeystoneDomain(a.ProjectDomainID, a.ProjectDomain, a.DomainID, a.Domain)
}

func chooseKeystoneDomain(id, name, otherID, otherName string) domain {
	switch {
	case id != "":
		return domain{id: id}
	case name != "":
		return domain{name: name}
	case otherID != "":
		return domain{id: otherID}
	}
	return domain{name: otherName}
}

// authOptions returns the entry as options of the SDK.
func (e entry) authOptions() *gophercloud.AuthOptions {
	a := e.Auth
	out := &gophercloud.AuthOptions{IdentityEndpoint: a.URL, AllowReauth: true}
	if a.UserID != "" {
		out.UserID = a.UserID
	} else {
		out.Username, out.DomainID, out.DomainName = a.Username, a.userDomain().id, a.userDomain().name
	}
	if e.usesApplicationCredential() {
		out.ApplicationCredentialID, out.ApplicationCredentialSecret = a.CredentialID, a.CredentialsSecret
		if a.CredentialID == "" {
			out.ApplicationCredentialName = a.Credential
		} else {
			out.UserID, out.Username, out.DomainID, out.DomainName = "", "", "", "" // the ID already determines the user and domain
		}
		return out
	}
	out.Password = a.Password
	out.Scope = &gophercloud.AuthScope{ProjectID: a.ProjectID}
	if a.ProjectID == "" {
		out.Scope = &gophercloud.AuthScope{ProjectName: a.Project, DomainID: a.projectDomain().id, DomainName: a.projectDomain().name}
	}
	return out
}
