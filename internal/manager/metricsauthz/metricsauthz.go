// Package metricsauthz restricts access to a server. It asks the hub who owns a token, and whether that
// user has access.
//
// controller-runtime's filter does the same, but treats a token that the hub does not know as an
// internal error, and answers 500.
package metricsauthz

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// How long an answer of the hub is cached: frequent requests cost the hub little, and a user who
// loses a permission soon loses access here.
const (
	successTTL = time.Minute
	failureTTL = 10 * time.Second
	// answerLimit is how long the hub may take to authenticate a token.
	answerLimit = 10 * time.Second
)

// Guard admits or rejects requests to a server.
type Guard struct {
	log                logr.Logger
	tokenAuthenticator authenticator.Token
	requestAuthorizer  authorizer.Authorizer
}

// New returns a guard that asks the hub that cfg reaches. It needs permission to create
// TokenReviews and SubjectAccessReviews there.
func New(cfg *rest.Config, log logr.Logger) (*Guard, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client for SubjectAccessReviews: %w", err)
	}
	tokens, err := authenticationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("creating a client for TokenReviews: %w", err)
	}
	rights, err := authorizationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("creating a client for SubjectAccessReviews: %w", err)
	}
	mays, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: rights,
		AllowCacheTTL:             successTTL,
		DenyCacheTTL:              failureTTL,
		WebhookRetryBackoff:       &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("creating the authorizer of metrics: %w", err)
	}
	return &Guard{log: log, tokenAuthenticator: cache.New(reviewer{tokens.TokenReviews()}, false, successTTL, failureTTL), requestAuthorizer: mays}, nil
}

// WrapHandler returns a handler that passes to h the requests of users who may use the method on
// the path, according to RBAC's nonResourceURLs. It answers 401 without a token of the hub, 403
// without permission, and 503 while the hub cannot be asked.
func (g *Guard) WrapHandler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, ok, err := g.authenticateRequest(req)
		switch {
		case err != nil:
			g.respondUnavailable(w, err)
			return
		case !ok:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unauthorized: send a token of the hub (Authorization: Bearer)", http.StatusUnauthorized)
			return
		}
		verb := strings.ToLower(req.Method)
		decision, _, err := g.requestAuthorizer.Authorize(req.Context(), authorizer.AttributesRecord{User: who, Verb: verb, Path: req.URL.Path})
		switch {
		case err != nil:
			g.respondUnavailable(w, err)
		case decision != authorizer.DecisionAllow:
			http.Error(w, fmt.Sprintf("Forbidden: %s may not %s %s: bind a role that allows it", who.GetName(), verb, req.URL.Path), http.StatusForbidden)
		default:
			h.ServeHTTP(w, req)
		}
	})
}

// respondUnavailable logs the error for the operator, and answers the client without its details.
func (g *Guard) respondUnavailable(w http.ResponseWriter, err error) {
	g.log.Error(err, "the hub cannot authenticate the request for metrics")
	http.Error(w, "The hub cannot authenticate you: see the log of hotspare", http.StatusServiceUnavailable)
}

// authenticateRequest returns the user whose token the request contains; false if the hub does not
// know such a user.
func (g *Guard) authenticateRequest(req *http.Request) (user.Info, bool, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, false, nil
	}
	res, ok, err := g.tokenAuthenticator.AuthenticateToken(req.Context(), token)
	if err != nil || !ok {
		return nil, false, err
	}
	return res.User, true, nil
}

// reviewer authenticates tokens by TokenReviews of the hub.
type reviewer struct {
	reviews authenticationclient.TokenReviewInterface
}

// AuthenticateToken returns an error only if the hub does not answer. For a token that the hub does
// not know, it returns false and no error.
func (r reviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	got, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("reviewing a token: %w", err)
	}
	if !got.Status.Authenticated {
		return nil, false, nil
	}
	if got.Status.User.Username == "" {
		return nil, false, errors.New("reviewing a token: the hub accepts the token but names no user")
	}
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: got.Status.User.Username, UID: got.Status.User.UID, Groups: got.Status.User.Groups, Extra: convertUserExtra(got.Status.User.Extra),
	}}, true, nil
}

// convertUserExtra converts the extra fields of a user to the type that an authorizer takes.
func convertUserExtra(in map[string]authenticationv1.ExtraValue) map[string][]string {
	out := make(map[string][]string, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}
