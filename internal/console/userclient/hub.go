// Package userclient reads and writes the hub with the permissions of one user, from caches of the
// user's own. It never uses other credentials and never reads a Secret.
package userclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// ErrUnknown is returned if the hub does not accept the credentials, or no longer accepts them.
var ErrUnknown = errors.New("the hub does not accept this token, or no longer accepts it")

// requestTimeout bounds each request to the hub.
const requestTimeout = 20 * time.Second

// Request rates of one user: the first request of a page asks for several permissions.
const (
	qps   = 50
	burst = 200
)

// scheme has the kinds that pages show.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, hivev1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types with the same name, a programming error
		}
	}
	return s
}

// Scheme returns the scheme of the kinds that pages show.
func Scheme() *runtime.Scheme { return scheme }

// restMapper has all kinds that the console reads and writes. Requests for any other kind, such as
// Secret, fail before they are sent.
var restMapper = NewRESTMapper()

// NewRESTMapper returns a mapper of the kinds that the console reads and writes, and of no other.
func NewRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(in schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			m.Add(in.WithKind(kind), scope)
			m.Add(in.WithKind(kind+"List"), scope) // a cache of one namespace asks for the scope of lists
		}
	}
	add(hivev1.GroupVersion, meta.RESTScopeNamespace,
		"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterDeploymentCustomization", "ClusterProvision", "MachinePool")
	add(hivev1.GroupVersion, meta.RESTScopeRoot, "ClusterImageSet")
	add(v1alpha1.GroupVersion, meta.RESTScopeNamespace, "PowerSchedule", "PoolPolicy", "ClusterBootstrap", "FleetRegion", "DataPlane", "DataPlaneAgent", "ServiceInstance")
	add(v1alpha1.GroupVersion, meta.RESTScopeRoot, "InstanceType")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Event")
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Namespace")
	m.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	return m
}

// A Hub is an API server whose users bring their own credentials.
type Hub struct {
	// anonymousConfig has no credentials, adminConfig those of the person who runs the hub.
	anonymousConfig, adminConfig *rest.Config
	clock                        clock.PassiveClock
}

// NewHub returns the hub that cfg reaches. It does not use the credentials in cfg. admin has the
// credentials of the person who runs the hub; nil if there is none.
func NewHub(cfg, admin *rest.Config, userAgent string, c clock.PassiveClock) *Hub {
	h := &Hub{anonymousConfig: rest.AnonymousClientConfig(cfg), clock: c}
	if admin != nil {
		h.adminConfig = rest.CopyConfig(admin)
	}
	for _, one := range []*rest.Config{h.anonymousConfig, h.adminConfig} {
		if one != nil {
			one.UserAgent, one.QPS, one.Burst = userAgent, qps, burst
			one.WarningHandler = rest.NoWarnings{} // they are for authors of manifests
		}
	}
	return h
}

// UserForToken returns the user of a token. The caller must close it. The error is ErrUnknown if
// the hub does not accept the token. ctx bounds the request; the user's caches live until life
// ends.
func (h *Hub) UserForToken(ctx, life context.Context, token string) (*User, error) {
	cfg := rest.CopyConfig(h.anonymousConfig)
	cfg.BearerToken = token
	return h.connectUser(ctx, life, cfg)
}

// AdminUser returns the person who runs the hub. The caller must close it.
func (h *Hub) AdminUser(ctx, life context.Context) (*User, error) {
	if h.adminConfig == nil {
		return nil, ErrUnknown
	}
	return h.connectUser(ctx, life, h.adminConfig)
}

func (h *Hub) connectUser(ctx, life context.Context, cfg *rest.Config) (*User, error) {
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of the hub: %w", err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: transport, Scheme: scheme, Mapper: restMapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the hub: %w", err)
	}
	name, err := readUserName(ctx, c)
	if err != nil {
		return nil, err
	}
	return newUser(life, name, cfg, transport, c, h.clock), nil
}

// readUserName asks the hub for the name of the client's user.
func readUserName(ctx context.Context, c client.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	switch {
	case apierrors.IsUnauthorized(err):
		return "", ErrUnknown
	case err != nil:
		return "", fmt.Errorf("asking the hub who this is: %w", err)
	}
	user := review.Status.UserInfo
	if user.Username == "" || user.Username == anonymous {
		return "", ErrUnknown
	}
	return user.Username, nil
}

// anonymous is the user name of requests without credentials, if the API server accepts them.
const anonymous = "system:anonymous"

// sharedTransport is the connection that the caches share with the user's client.
type sharedTransport struct {
	cfg  *rest.Config
	http *http.Client
}
