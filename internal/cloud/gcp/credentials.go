package gcp

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// secretKey is the Secret key in which Hive and the installer store the service account's key.
const secretKey = "osServiceAccount.json"

const (
	googleTokens   = "https://oauth2.googleapis.com/token"
	googleUniverse = "googleapis.com"
)

// credentials is a service account's key in Google's format.
type credentials struct {
	Type       string `json:"type"`
	ID         string `json:"project_id"`
	Email      string `json:"client_email"`
	PrivateKey string `json:"private_key"`
	KeyID      string `json:"private_key_id"`
	TokenURI   string `json:"token_uri"`
	Universe   string `json:"universe_domain"`

	cluster, secret types.NamespacedName
}

// openProject reads the key and requests a token with it.
func (a Actuator) openProject(ctx context.Context, ref cloud.Ref, set settings) (*project, error) {
	c, err := a.readCredentials(ctx, ref)
	if err != nil {
		return nil, err
	}
	token, err := c.fetchToken(ctx, a.options.Transport)
	if err != nil {
		return nil, err
	}
	endpoint := a.options.Endpoint
	if endpoint == "" {
		endpoint = "https://compute." + c.Universe + "/compute/v1/"
	}
	// With an explicit client, the library does not look for credentials in the environment, in
	// files or at the metadata server.
	client := &http.Client{Transport: &oauth2.Transport{Source: oauth2.StaticTokenSource(token), Base: a.options.Transport}}
	api, err := compute.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(endpoint))
	if err != nil {
		return nil, fault.New(fault.Unknown, fmt.Errorf("creating a Compute Engine client: %w", err))
	}
	return &project{credentials: c, settings: set, token: token.AccessToken, api: api}, nil
}

func (a Actuator) readCredentials(ctx context.Context, ref cloud.Ref) (*credentials, error) {
	name := ref.Platform.Settings().CredentialsSecretRef
	if name == nil || name.Name == "" {
		return nil, fault.NewDenied("ClusterDeployment %s names no credentials: set spec.platform.gcp.credentialsSecretRef.name to a Secret with key %s", ref.Cluster, secretKey)
	}
	key := types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: name.Name}
	data, err := a.secrets(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	c := &credentials{cluster: ref.Cluster, secret: key}
	if why := c.parseServiceAccountKey(data[secretKey]); why != "" {
		return nil, c.credentialsError(why)
	}
	return c, nil
}

// parseServiceAccountKey parses the key. It returns what is wrong with it, without quoting it.
func (c *credentials) parseServiceAccountKey(raw []byte) string {
	if len(raw) == 0 {
		return "the key is missing or empty"
	}
	if json.Unmarshal(raw, c) != nil {
		return "the key is not the JSON of a service account"
	}
	if c.Type != "service_account" {
		return `its "type" is not "service_account": other kinds name programs and files that hotspare does not run or read`
	}
	for _, f := range []struct{ name, value string }{{"project_id", c.ID}, {"client_email", c.Email}, {"private_key", c.PrivateKey}} {
		if f.value == "" {
			return fmt.Sprintf("it has no %q", f.name)
		}
	}
	if !isPrivateKey(c.PrivateKey) {
		return `its "private_key" is not a private key in PEM`
	}
	if c.TokenURI == "" {
		c.TokenURI = googleTokens
	}
	if c.Universe == "" {
		c.Universe = googleUniverse
	}
	return ""
}

func isPrivateKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}

// credentialsError returns an error that says where the credentials are, what is wrong and what to
// do.
func (c *credentials) credentialsError(why string) error {
	return fault.NewDenied("credentials in Secret %s, key %s: %s: store the JSON key of a service account there that may list, start and stop instances "+
		"(gcloud iam service-accounts keys create)", c.secret, secretKey, why)
}

// fetchToken exchanges a signed assertion for a token. Every call of Power requests its own token,
// so a revoked key stops working with the next call.
func (c *credentials) fetchToken(ctx context.Context, via http.RoundTripper) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, powerorder.RequestTimeout)
	defer cancel()
	conf := jwt.Config{
		Email: c.Email, PrivateKey: []byte(c.PrivateKey), PrivateKeyID: c.KeyID,
		Scopes: []string{compute.ComputeScope}, TokenURL: c.TokenURI,
	}
	client := &http.Client{Transport: contextTransport{ctx, via}}
	token, err := conf.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)).Token()
	switch {
	case ctx.Err() != nil:
		return nil, fault.New(fault.Unknown, fmt.Errorf("getting a token for %s: %w", c.Email, ctx.Err()))
	case err != nil:
		return nil, c.translateTokenError(err)
	case token.AccessToken == "":
		return nil, fault.New(fault.Unknown, fmt.Errorf("getting a token for %s: the response of the token server contains none", c.Email))
	}
	return token, nil
}

// translateTokenError translates an error of the token server.
func (c *credentials) translateTokenError(err error) error {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) {
		return fault.New(fault.Unknown, fmt.Errorf("getting a token for %s: %s", c.Email, redact.Text(err.Error())))
	}
	code := said.Response.StatusCode
	if code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return fault.NewWait(busyDelay, "getting a token for %s: the token server answers with status %d", c.Email, code)
	}
	return c.credentialsError(fmt.Sprintf("Google rejects it (%s)", tokenErrorMessage(said.Body, code)))
}

// tokenErrorMessage returns the part of a token server's response that is safe to show.
func tokenErrorMessage(body []byte, code int) string {
	var answer struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil || !regexp.MustCompile(`^[a-z_]{1,40}$`).MatchString(answer.Error) {
		return fmt.Sprintf("status %d", code)
	}
	if answer.Description == "" {
		return answer.Error
	}
	return answer.Error + ": " + redact.Text(answer.Description)
}

// contextTransport adds a context to requests: the library's own token requests have none.
type contextTransport struct {
	ctx context.Context //nolint:containedctx // it lives as long as one request
	via http.RoundTripper
}

// RoundTrip sends the request with the context.
func (t contextTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.via.RoundTrip(r.WithContext(t.ctx))
}
