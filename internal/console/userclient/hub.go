// Package userclient is the hub as one person sees it: with that person's rights, out of a
// memory of their own that the hub keeps up to date. Nothing is read with anybody
// else's rights, and no Secret is read at all.
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

// ErrUnknown is when the hub does not know who somebody says they are, or not any more.
var ErrUnknown = errors.New("the hub does not accept this token, or no longer accepts it")

// requestTimeout bounds every question to the hub.
const requestTimeout = 20 * time.Second

// Rates of one person's questions: a page asks for some rights when it is first opened.
const (
	qps   = 50
	burst = 200
)

// scheme has the kinds that can be shown.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, hivev1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in this program
		}
	}
	return s
}

// Scheme returns the kinds that can be shown.
func Scheme() *runtime.Scheme { return scheme }

// restMapper knows all kinds that the console reads and writes. A kind that is not here,
// as Secret, cannot even be asked for.
var restMapper = NewRESTMapper()

// NewRESTMapper returns the kinds that the console reads and writes, and no other.
func NewRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(in schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			m.Add(in.WithKind(kind), scope)
			m.Add(in.WithKind(kind+"List"), scope) // a memory of one namespace asks for the scope of lists
		}
	}
	add(hivev1.GroupVersion, meta.RESTScopeNamespace,
		"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterDeploymentCustomization", "ClusterProvision", "MachinePool")
	add(hivev1.GroupVersion, meta.RESTScopeRoot, "ClusterImageSet")
	add(v1alpha1.GroupVersion, meta.RESTScopeNamespace, "PowerSchedule", "FleetRegion", "DataPlane", "DataPlaneAgent", "ServiceInstance")
	add(v1alpha1.GroupVersion, meta.RESTScopeRoot, "InstanceType")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Event")
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Namespace")
	m.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	return m
}

// A Hub is an API server whose viewers come with their own credentials.
type Hub struct {
	// anonymousConfig reaches it as nobody, admin as the person who runs it.
	anonymousConfig, adminConfig *rest.Config
	clock                        clock.PassiveClock
}

// NewHub returns the hub that cfg reaches. The credentials in cfg are used for nothing.
// admin is how the person who runs the hub reaches it, nil where there is no such person.
func NewHub(cfg, admin *rest.Config, userAgent string, c clock.PassiveClock) *Hub {
	h := &Hub{anonymousConfig: rest.AnonymousClientConfig(cfg), clock: c}
	if admin != nil {
		h.adminConfig = rest.CopyConfig(admin)
	}
	for _, one := range []*rest.Config{h.anonymousConfig, h.adminConfig} {
		if one != nil {
			one.UserAgent, one.QPS, one.Burst = userAgent, qps, burst
			one.WarningHandler = rest.NoWarnings{} // they are for who writes manifests
		}
	}
	return h
}

// UserForToken returns the person with that token, who needs Close in the end. The error is
// ErrUnknown when the hub does not know it. ctx bounds the question; the person's
// memory lives until life ends.
func (h *Hub) UserForToken(ctx, life context.Context, token string) (*User, error) {
	cfg := rest.CopyConfig(h.anonymousConfig)
	cfg.BearerToken = token
	return h.connectUser(ctx, life, cfg)
}

// AdminUser returns the person who runs the hub, who needs Close in the end.
func (h *Hub) AdminUser(ctx, life context.Context) (*User, error) {
	if h.adminConfig == nil {
		return nil, ErrUnknown
	}
	return h.connectUser(ctx, life, h.adminConfig)
}

func (h *Hub) connectUser(ctx, life context.Context, cfg *rest.Config) (*User, error) {
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: transport, Scheme: scheme, Mapper: restMapper})
	if err != nil {
		return nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	name, err := readUserName(ctx, c)
	if err != nil {
		return nil, err
	}
	return newUser(life, name, cfg, transport, c, h.clock), nil
}

// readUserName asks the hub for whom it takes the client.
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

// anonymous is who comes without credentials to an API server that lets such in.
const anonymous = "system:anonymous"

// sharedTransport is what caches share with the person's client.
type sharedTransport struct {
	cfg  *rest.Config
	http *http.Client
}
