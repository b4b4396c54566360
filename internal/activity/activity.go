// Package activity defines how the API server of a local cluster reports whether anybody uses the cluster, and which
// of its users count. The API server and the hub share it.
package activity

import (
	"slices"
	"strings"
)

// Path is where the API server reports its activity. Like other paths that are no resources, RBAC permits or denies
// them.
const Path = "/hotspare.io/activity"

// HubUser is the user as whom the hub connects to local clusters. Its requests do not count.
const HubUser = "system:hotspare-hub"

// adminUser is the user of the administrator's kubeconfig, which claimants get.
const adminUser = "system:admin"

// Prefixes of the names of service accounts, and of those of a cluster's own components.
const (
	serviceAccounts       = "system:serviceaccount:"
	systemServiceAccounts = "system:serviceaccount:kube-system:"
)

// nodeBootstrapper is the user with whose token a machine requests its first certificate.
const nodeBootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// Report is what the API server reports, as JSON.
type Report struct {
	Counts
	// Sources are the same figures by the source of the requests: that of users is UserSource, and that of service
	// accounts their namespace. It is nil if the API server is of an older version.
	Sources map[string]Counts `json:"sources,omitempty"`
}

// UserSource is the source of the requests of users that are no service accounts.
const UserSource = ""

// Counts are the counted requests, of one source or of all.
type Counts struct {
	// IdleSeconds is the time since the last counted request ended, or, if there was none, since the API server
	// started or woke up. It is measured by the monotonic clock of its process.
	IdleSeconds float64 `json:"idleSeconds"`
	// OpenRequests is the number of counted requests that are open now, such as watches.
	OpenRequests int `json:"openRequests"`
	// Requests is the number of counted requests since the API server started or woke up.
	Requests int64 `json:"requests"`
}

// CountsAsUse reports whether the requests of a user count as use of the cluster. Those of the system do not: users
// whose names begin with "system:", among them anonymous ones, nodes, the hub and the service accounts of namespace
// kube-system, and the account with which machines request their first certificates. The administrator and all other service accounts count.
func CountsAsUse(user string) bool {
	switch {
	case user == adminUser:
		return true
	case user == nodeBootstrapper:
		return false
	case strings.HasPrefix(user, serviceAccounts):
		return !strings.HasPrefix(user, systemServiceAccounts)
	default:
		return user != "" && !strings.HasPrefix(user, "system:")
	}
}

// SourceOf returns the source of the requests of a user: the namespace of a service account, UserSource of others.
func SourceOf(user string) string {
	account, isServiceAccount := strings.CutPrefix(user, serviceAccounts)
	if !isServiceAccount {
		return UserSource
	}
	namespace, _, _ := strings.Cut(account, ":")
	return namespace
}

// Without returns the figures without the requests of the service accounts of namespaces. A report that does not have
// the sources counts as a whole: what is not known never causes sleep.
func (r Report) Without(namespaces []string) Counts {
	out, found := r.Sources[UserSource]
	if !found {
		return r.Counts
	}
	for source, c := range r.Sources {
		if source == UserSource || slices.Contains(namespaces, source) {
			continue
		}
		out.IdleSeconds = min(out.IdleSeconds, c.IdleSeconds)
		out.OpenRequests += c.OpenRequests
		out.Requests += c.Requests
	}
	return out
}

// IsSensible reports whether no figure is negative.
func (r Report) IsSensible() bool {
	for _, c := range r.Sources {
		if !c.isSensible() {
			return false
		}
	}
	return r.isSensible()
}

func (c Counts) isSensible() bool {
	return c.IdleSeconds >= 0 && c.OpenRequests >= 0 && c.Requests >= 0
}
