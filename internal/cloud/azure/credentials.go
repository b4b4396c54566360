package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// secretKey is the Secret key in which Hive and the installer store the service principal.
const secretKey = "osServicePrincipal.json"

// clouds maps the installer's names to Azure's clouds. Azure Stack is missing, because its
// endpoints differ for each installation.
var clouds = map[string]azcloud.Configuration{
	"AzurePublicCloud":       azcloud.AzurePublic,
	"AzureUSGovernmentCloud": azcloud.AzureGovernment,
	"AzureChinaCloud":        azcloud.AzureChina,
}

// account is a service principal as printed by az ad sp create-for-rbac. Field names are
// case-insensitive.
type account struct {
	ClientID       string `json:"clientId"`
	ClientSecret   string `json:"clientSecret"`
	TenantID       string `json:"tenantId"`
	SubscriptionID string `json:"subscriptionId"`

	secret types.NamespacedName
	cloud  azcloud.Configuration
}

// openResourceGroup reads the cluster's settings and credentials, and requests a token. For selected
// machines, the metadata of the cluster is not read.
func (actuator Actuator) openResourceGroup(ctx context.Context, ref cloud.Ref) (*group, error) {
	a, err := actuator.readServicePrincipal(ctx, ref)
	if err != nil {
		return nil, err
	}
	var name string
	if actuator.selected != nil {
		name, err = actuator.selected.resourceGroups(a.SubscriptionID)
	} else {
		name, err = actuator.findGroupName(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	token, err := a.fetchToken(ctx, actuator.transport)
	if err != nil {
		return nil, err
	}
	api, err := armcompute.NewVirtualMachinesClient(a.SubscriptionID, staticToken{token}, &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud:     a.cloud,
			Transport: &http.Client{Transport: actuator.transport},
			Retry:     policy.RetryOptions{MaxRetries: -1}, // the caller retries, and reports why it waits
		},
		DisableRPRegistration: true, // no side effects on the subscription
	})
	if err != nil {
		return nil, fault.New(fault.Unknown, fmt.Errorf("creating an Azure client: %w", err))
	}
	return &group{account: a, name: name, selected: actuator.selected, api: api, token: token.AccessToken}, nil
}

func (actuator Actuator) readServicePrincipal(ctx context.Context, ref cloud.Ref) (*account, error) {
	name := ref.Platform.Settings().CredentialsSecretRef
	if ref.Platform.Azure == nil || name == nil || name.Name == "" {
		return nil, fault.NewDenied("ClusterDeployment %s names no credentials: set spec.platform.azure.credentialsSecretRef.name to a Secret with key %s", ref.Cluster, secretKey)
	}
	a := &account{secret: types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: name.Name}}
	if err := a.chooseAzureCloud(ref); err != nil {
		return nil, err
	}
	data, err := actuator.secrets(ctx, a.secret)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	if why := a.parsePrincipal(data[secretKey]); why != "" {
		return nil, a.credentialsError(why)
	}
	return a, nil
}

// chooseAzureCloud selects the cloud named in spec.platform.azure.cloudName.
func (a *account) chooseAzureCloud(ref cloud.Ref) error {
	var set struct {
		CloudName string `json:"cloudName"`
	}
	if err := json.Unmarshal(ref.Platform.Azure.Raw, &set); err != nil {
		return fault.NewDenied("reading spec.platform.azure of ClusterDeployment %s: %w: set cloudName to a string", ref.Cluster, err)
	}
	if set.CloudName == "" {
		set.CloudName = "AzurePublicCloud"
	}
	found, known := clouds[set.CloudName]
	if !known {
		return fault.NewDenied("spec.platform.azure.cloudName of ClusterDeployment %s is %q, which hotspare does not support: use %s",
			ref.Cluster, set.CloudName, strings.Join(slices.Sorted(maps.Keys(clouds)), ", "))
	}
	a.cloud = found
	return nil
}

// parsePrincipal parses the service principal. It returns what is wrong with it, without quoting
// it.
func (a *account) parsePrincipal(raw []byte) string {
	if len(raw) == 0 {
		return "the key is missing or empty"
	}
	if json.Unmarshal(raw, a) != nil {
		return "the key is not the JSON of a service principal"
	}
	for _, f := range []struct{ name, value string }{
		{"clientId", a.ClientID}, {"clientSecret", a.ClientSecret}, {"tenantId", a.TenantID}, {"subscriptionId", a.SubscriptionID},
	} {
		if f.value == "" {
			return fmt.Sprintf("it has no %q", f.name)
		}
	}
	return ""
}

// credentialsError returns an error that says where the credentials are, what is wrong and what to
// do.
func (a *account) credentialsError(why string) error {
	return fault.NewDenied("credentials in Secret %s, key %s: %s: store the clientId, clientSecret, tenantId and subscriptionId of a service principal there "+
		"that may read, start and deallocate virtual machines (az ad sp credential reset creates a new secret)", a.secret, secretKey, why)
}

// fetchToken exchanges the client secret for a token. Every call of Power requests its own token,
// so a revoked principal stops working with the next call.
func (a *account) fetchToken(ctx context.Context, via http.RoundTripper) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, powerorder.RequestTimeout)
	defer cancel()
	conf := clientcredentials.Config{
		ClientID: a.ClientID, ClientSecret: a.ClientSecret, AuthStyle: oauth2.AuthStyleInParams,
		TokenURL: a.cloud.ActiveDirectoryAuthorityHost + url.PathEscape(a.TenantID) + "/oauth2/v2.0/token",
		Scopes:   []string{a.cloud.Services[azcloud.ResourceManager].Audience + "/.default"},
	}
	token, err := conf.Token(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: via}))
	var said *oauth2.RetrieveError
	switch {
	case err == nil:
		return token, nil
	case ctx.Err() != nil:
		return nil, fault.New(fault.Unknown, fmt.Errorf("getting a token for %s: %w", a.ClientID, ctx.Err()))
	case !errors.As(err, &said):
		return nil, fault.New(fault.Unknown, fmt.Errorf("getting a token for %s: %s", a.ClientID, a.redactCredentials(err.Error())))
	case said.Response.StatusCode == http.StatusTooManyRequests, said.Response.StatusCode >= http.StatusInternalServerError:
		return nil, fault.NewWait(busyDelay, "getting a token for %s: the token server answers with status %d", a.ClientID, said.Response.StatusCode)
	}
	return nil, a.credentialsError("Azure rejects it (" + a.tokenErrorMessage(said) + ")")
}

// tokenErrorMessage returns the part of a token server's response that is safe to show and the same
// for each try; the request's IDs and time come after it.
func (a *account) tokenErrorMessage(said *oauth2.RetrieveError) string {
	if said.ErrorCode == "" {
		return fmt.Sprintf("status %d", said.Response.StatusCode)
	}
	words, _, _ := strings.Cut(said.ErrorDescription, "Trace ID:")
	words, _, _ = strings.Cut(words, "\n")
	return strings.TrimSuffix(a.redactCredentials(said.ErrorCode+": "+strings.TrimSpace(words)), ": ")
}

// redactCredentials removes the client secret, and anything that looks like one, from the text of a
// response.
func (a *account) redactCredentials(words string) string { return redact.Text(words, a.ClientSecret) }

// staticToken is an existing token.
type staticToken struct{ *oauth2.Token }

// GetToken returns the token.
func (t staticToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: t.AccessToken, ExpiresOn: t.Expiry}, nil
}

// metadata is the installer's data about a cluster on Azure, both in clusterMetadata.platform and
// in metadata.json.
type metadata struct {
	Azure *struct {
		ResourceGroupName string `json:"resourceGroupName"`
	} `json:"azure"`
}

// findGroupName returns the name of the cluster's resource group, from clusterMetadata.platform or
// else from the Secret with metadata.json, the only place in newer versions of Hive.
func (actuator Actuator) findGroupName(ctx context.Context, ref cloud.Ref) (string, error) {
	missing := fault.NewDenied("the resource group of ClusterDeployment %s is unknown: set spec.clusterMetadata.platform.azure.resourceGroupName, "+
		"or spec.clusterMetadata.metadataJSONSecretRef.name to a Secret whose key metadata.json has azure.resourceGroupName", ref.Cluster)
	if ref.Metadata == nil {
		return "", missing
	}
	if raw := ref.Metadata.Platform; raw != nil && len(raw.Raw) > 0 {
		var m metadata
		if err := json.Unmarshal(raw.Raw, &m); err != nil {
			return "", fault.NewDenied("reading spec.clusterMetadata.platform of ClusterDeployment %s: %w: set azure.resourceGroupName to a string", ref.Cluster, err)
		}
		if m.Azure != nil && m.Azure.ResourceGroupName != "" {
			return m.Azure.ResourceGroupName, nil
		}
	}
	name := ref.Metadata.MetadataJSONSecretRef
	if name == nil || name.Name == "" {
		return "", missing
	}
	return actuator.readGroupName(ctx, types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: name.Name}, ref.InfraID)
}

// readGroupName reads the name from the Secret with metadata.json. If it is not set there, the
// installer chose the default name.
func (actuator Actuator) readGroupName(ctx context.Context, key types.NamespacedName, infraID string) (string, error) {
	data, err := actuator.secrets(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading metadata.json: %w", err)
	}
	var m metadata
	if json.Unmarshal(data["metadata.json"], &m) != nil || m.Azure == nil {
		return "", fault.NewDenied("Secret %s, key metadata.json: that is not the installer's metadata.json of a cluster on Azure: "+
			"store its metadata.json there, with azure.resourceGroupName", key)
	}
	if m.Azure.ResourceGroupName == "" {
		return infraID + "-rg", nil
	}
	return m.Azure.ResourceGroupName, nil
}
