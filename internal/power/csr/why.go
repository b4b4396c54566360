package csr

import (
	"fmt"
	"strings"
)

// Reasons for leaving a request alone. Users read these, and the author of a request controls its
// content, so the reasons quote nothing from it.
const (
	whySigner       = "its signer does not sign certificates of nodes"
	whyAnswered     = "it is already approved or denied"
	whyFlood        = "there are too many open requests"
	whyPEM          = "it is not exactly one certificate request in PEM"
	whyDER          = "it cannot be parsed"
	whySignature    = "its signature is wrong"
	whyOrganization = "its subject does not have the form of a node's subject"
	whyCommonName   = "its subject does not name a node"
	whyNames        = "it requests names that such a certificate may not have, or lacks names that it needs"
	whyUsages       = "it requests usages other than a kubelet's"
	whyUser         = "its requestor is not the bootstrap account of machines"
	whyOther        = "its requestor is not the node in its subject"
	whyGroups       = "its requestor has the wrong groups"
	whyRenewal      = "it renews a node's own certificate: the cluster itself approves such requests"
	whyOff          = "the cluster's machine approver is configured not to approve client certificates"
	whyTwice        = "a client certificate of that node was already approved in this resume"
	whyClosed       = "the approval window of this resume is over"
	whyOld          = "it was not created in this resume"
	whyNode         = "the cluster has no such node"
	whyMachine      = "no known machine belongs to that node"
	whyAlive        = "that node is not known to be down"
	whyAddress      = "it requests an address that the machine does not have"
)

// Limits on quoting text that others have written.
const (
	maxListed     = 3
	maxNameLength = 40
)

// DescribeWaiting describes the requests that are not approved, in a sentence that does not
// change while they stay the same; "" if there are none.
func DescribeWaiting(verdicts []Decision) string {
	var told []string
	n := 0
	for _, v := range verdicts {
		if !v.Waits {
			continue
		}
		if n++; n <= maxListed {
			told = append(told, fmt.Sprintf("%s (%s)", truncateName(v.Request.Name), v.Why))
		}
	}
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "1 certificate request is not approved: " + told[0] + "."
	case n > maxListed:
		told = append(told, fmt.Sprintf("and %d more", n-maxListed))
	}
	return fmt.Sprintf("%d certificate requests are not approved: %s.", n, strings.Join(told, ", "))
}

// truncateName shortens a name that others have chosen to a readable length.
func truncateName(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return name[:maxNameLength] + "…"
}
