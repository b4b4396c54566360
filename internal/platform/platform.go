// Package platform assembles what hotspare can do on platforms whose machines are not on the hub:
// it starts and stops them, and installs clusters on them from Jobs on the hub.
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/install"
	installcapi "hotspare.io/hotspare/internal/install/capi"
	"hotspare.io/hotspare/internal/install/job"
)

// Options select the platforms.
type Options struct {
	// Only lists the platforms to enable, by their keys in spec.platform (see Names). Empty means
	// all.
	Only []string
	// Jobs configures how clusters are installed; if it is nil, no clusters are installed.
	Jobs *job.Options
	// CertificateAuthorities names Secrets of the hub with CA certificates that installers and
	// actuators of all platforms trust in addition to the system's.
	CertificateAuthorities []types.NamespacedName
}

// Set contains the actuators and executors, by the key in spec.platform. The caller may add to its
// registries.
type Set struct {
	Actuators cloud.Registry
	Executors install.Registry
	// Secrets reads the Secrets of the hub.
	Secrets cloud.Secrets
	// CertificateAuthorities reads the Secrets in Options.CertificateAuthorities; nil if there are
	// none.
	CertificateAuthorities *cabundle.Source
	// Tend must run as long as the others are used: it maintains their sessions, and logs them out
	// when its context ends.
	Tend func(context.Context) error
}

// Names returns the keys of all supported platforms, sorted.
func Names() []string {
	actuators, _ := newActuators(nil, nil, nil)
	names := append(slices.Collect(maps.Keys(actuators)), job.SupportedPlatforms()...)
	names = append(names, execPlatform)
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckNames returns an error if only contains an unsupported platform.
func CheckNames(only []string) error {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no platform %q: choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// New returns the Set for the hub that cfg reaches. It sends no requests to the hub.
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
		Secrets:                secrets,
		CertificateAuthorities: cabundle.NewSource(o.CertificateAuthorities, cabundle.ReadSecret(secrets), clock.RealClock{}),
	}
	hub, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return Set{}, fmt.Errorf("creating a client for Cluster API: %w", err)
	}
	s.Actuators, s.Tend = newActuators(hub, secrets, s.CertificateAuthorities)
	s.Executors["capi"] = installcapi.New(hub, installcapi.Options{})
	if o.Jobs != nil {
		jobs := *o.Jobs
		jobs.CertificateAuthorities = s.CertificateAuthorities
		if err := s.addExecutors(cfg, jobs); err != nil {
			return Set{}, err
		}
	}
	if len(o.Only) > 0 {
		unwanted := func(name string) bool { return !slices.Contains(o.Only, name) }
		maps.DeleteFunc(s.Actuators, func(name string, _ cloud.Actuator) bool { return unwanted(name) })
		maps.DeleteFunc(s.Executors, func(name string, _ install.Executor) bool { return unwanted(name) })
	}
	return s, nil
}

// addExecutors adds an executor to each platform on which openshift-install creates clusters.
func (s Set) addExecutors(cfg *rest.Config, o job.Options) error {
	c, err := client.New(cfg, client.Options{Scheme: JobScheme()})
	if err != nil {
		return fmt.Errorf("creating a client for Jobs: %w", err)
	}
	executor := job.New(c, o)
	for _, name := range job.SupportedPlatforms() {
		s.Executors[name] = executor
	}
	return nil
}

// JobScheme returns a scheme with the kinds that installer Jobs use.
func JobScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, batchv1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds with one name: a bug in this program
		}
	}
	return s
}
