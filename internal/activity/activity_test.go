package activity

import (
	"testing"

	"hotspare.io/hotspare/internal/embedded/pki"
)

func TestTheNodeBootstrapperIsThatOfMachines(t *testing.T) {
	if nodeBootstrapper != pki.NodeBootstrapperUser {
		t.Errorf("%q does not count, and machines use %q", nodeBootstrapper, pki.NodeBootstrapperUser)
	}
}

func TestWhoseRequestsCount(t *testing.T) {
	for user, want := range map[string]bool{
		"system:admin": true,
		"jane":         true,
		"https://issuer.example.com#repo:acme/app":   true,
		"system:serviceaccount:default:app":          true,
		"system:serviceaccount:kube-system-evil:app": true,
		"system:serviceaccount:kube-system:coredns":  false,
		nodeBootstrapper: false,
		"system:serviceaccount:openshift-machine-config-operator:app": true,
		"system:anonymous":               false,
		"system:apiserver":               false,
		"system:kube-scheduler":          false,
		"system:kube-controller-manager": false,
		"system:node:mine-worker-0":      false,
		"system:bootstrap:abcdef":        false,
		HubUser:                          false,
		"":                               false,
		"system:admin2":                  false,
		"system:serviceaccounts":         false,
		"hotspare":                       true,
	} {
		if got := CountsAsUse(user); got != want {
			t.Errorf("%q: %t", user, got)
		}
	}
}

func TestWhatDoesNotCountIsLeftOut(t *testing.T) {
	users, app, controller := Counts{IdleSeconds: 60, Requests: 2}, Counts{IdleSeconds: 30, Requests: 1}, Counts{OpenRequests: 3, Requests: 9}
	all := Counts{OpenRequests: 3, Requests: 12}
	r := Report{Counts: all, Sources: map[string]Counts{UserSource: users, "default": app, "cert-manager": controller}}
	for _, tc := range []struct {
		name    string
		report  Report
		ignored []string
		want    Counts
	}{
		{"nothing is ignored", r, nil, all},
		{"a controller", r, []string{"cert-manager"}, Counts{IdleSeconds: 30, Requests: 3}},
		{"all service accounts", r, []string{"cert-manager", "default", "other"}, users},
		{"users are never ignored", r, []string{UserSource}, all},
		{"an older API server", Report{Counts: all}, []string{"cert-manager"}, all},
		{"an API server that does not report users", Report{Counts: all, Sources: map[string]Counts{"default": app}}, []string{"default"}, all},
	} {
		if got := tc.report.Without(tc.ignored); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestTheSourceOfARequest(t *testing.T) {
	for user, want := range map[string]string{
		"jane": UserSource, "system:admin": UserSource, "system:serviceaccount:cert-manager:controller": "cert-manager",
		"system:serviceaccounts:x:y": UserSource, "serviceaccount:x:y": UserSource,
	} {
		if got := SourceOf(user); got != want {
			t.Errorf("%q: got %q, want %q", user, got, want)
		}
	}
}
