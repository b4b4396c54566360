package activity

import "testing"

func TestWhoseRequestsCount(t *testing.T) {
	for user, want := range map[string]bool{
		"system:admin": true,
		"jane":         true,
		"https://issuer.example.com#repo:acme/app":   true,
		"system:serviceaccount:default:app":          true,
		"system:serviceaccount:kube-system-evil:app": true,
		"system:serviceaccount:kube-system:coredns":  false,
		"system:anonymous":                           false,
		"system:apiserver":                           false,
		"system:kube-scheduler":                      false,
		"system:kube-controller-manager":             false,
		"system:node:mine-worker-0":                  false,
		"system:bootstrap:abcdef":                    false,
		HubUser:                                      false,
		"":                                           false,
		"system:admin2":                              false,
		"system:serviceaccounts":                     false,
		"hotspare":                                   true,
	} {
		if got := CountsAsUse(user); got != want {
			t.Errorf("%q: %t", user, got)
		}
	}
}
