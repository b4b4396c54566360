// Package activity defines how the API server of a local cluster reports whether anybody uses the cluster, and which
// of its users count. The API server and the hub share it.
package activity

import "strings"

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

// Report is what the API server reports, as JSON.
type Report struct {
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
// kube-system. The administrator and all other service accounts count.
func CountsAsUse(user string) bool {
	switch {
	case user == adminUser:
		return true
	case strings.HasPrefix(user, serviceAccounts):
		return !strings.HasPrefix(user, systemServiceAccounts)
	default:
		return user != "" && !strings.HasPrefix(user, "system:")
	}
}
