// Package platform puts together what hotspare can do on the platforms whose machines
// are somewhere else: start and stop them, and make clusters of them in Jobs on the hub.
package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job"
)

// Options say which platforms there are to be.
type Options struct {
	// Only are their keys in spec.platform, of those in Names. None: all of them.
	Only []string
	// Jobs say how clusters are made; nil: none are.
	Jobs *job.Options
	// CertificateAuthorities are Secrets of the hub with CA certificates that installers and
	// actuators of all platforms trust in addition to those of the system.
	CertificateAuthorities []types.NamespacedName
}

// Set is what can be done, by the key in spec.platform. Its registries are the
// caller's to add to.
type Set struct {
	Actuators cloud.Registry
	Executors install.Registry
	// CertificateAuthorities reads the Secrets of the option of that name; nil without any.
	CertificateAuthorities *cabundle.Source
	// Tend is to run as long as the others are used: it keeps their sessions, and logs
	// them out when its context ends.
	Tend func(context.Context) error
}

// Names are all platforms that there can be, sorted.
func Names() []string {
	actuators, _ := newActuators(nil, nil)
	names := append(slices.Collect(maps.Keys(actuators)), job.SupportedPlatforms()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckNames says what is wrong with a choice of platforms.
func CheckNames(only []string) error {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no platform %q: choose of %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// New returns what can be done from the hub that cfg reaches. It asks the hub nothing.
func New(cfg *rest.Config, o Options) (Set, error) {
	if err := CheckNames(o.Only); err != nil {
		return Set{}, err
	}
	secrets, err := newSecretReader(cfg)
	if err != nil {
		return Set{}, err
	}
	s := Set{
		Executors:              install.Registry{},
		CertificateAuthorities: cabundle.NewSource(o.CertificateAuthorities, cabundle.ReadSecret(secrets), clock.RealClock{}),
	}
	s.Actuators, s.Tend = newActuators(secrets, s.CertificateAuthorities)
	if o.Jobs != nil {
		jobs := *o.Jobs
		jobs.CertificateAuthorities = s.CertificateAuthorities
		if err := s.addExecutors(cfg, jobs); err != nil {
			return Set{}, err
		}
	}
	if len(o.Only) > 0 {
		unwanted := func(name string) bool { return !slices.Contains(o.Only, name) }
		maps.DeleteFunc(s.Actuators, func(name string, _ cloud.Power) bool { return unwanted(name) })
		maps.DeleteFunc(s.Executors, func(name string, _ install.Executor) bool { return unwanted(name) })
	}
	return s, nil
}

// addExecutors adds an executor to each platform that openshift-install makes clusters on.
func (s Set) addExecutors(cfg *rest.Config, o job.Options) error {
	c, err := client.New(cfg, client.Options{Scheme: JobScheme()})
	if err != nil {
		return fmt.Errorf("making a client for Jobs: %w", err)
	}
	executor := job.New(c, o)
	for _, name := range job.SupportedPlatforms() {
		s.Executors[name] = executor
	}
	return nil
}

// JobScheme has the kinds that Jobs of installers are made of.
func JobScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, batchv1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in this program
		}
	}
	return s
}
