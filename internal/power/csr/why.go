package csr

import (
	"fmt"
	"strings"
)

// Reasons for leaving a request alone. Users read these, and the author of a request controls its
// content, so the reasons quote nothing from it.
const (
	whySigner       = "its signer is not one for nodes"
	whyAnswered     = "it has been answered"
	whyFlood        = "there are too many open requests"
	whyPEM          = "it is not one PEM certificate request"
	whyDER          = "it cannot be parsed"
	whySignature    = "its signature is wrong"
	whyOrganization = "its subject is not that of a node"
	whyCommonName   = "its subject names no node"
	whyNames        = "it asks for names that such a certificate may not have, or for none where it needs some"
	whyUsages       = "it asks for usages that are not a kubelet's"
	whyUser         = "its requestor is not the account that machines boot with"
	whyOther        = "its requestor is not the node that it is for"
	whyGroups       = "its requestor has the wrong groups"
	whyRenewal      = "a node renews its own certificate: that is for the cluster to answer"
	whyOff          = "the cluster's machine approver is told not to approve client certificates"
	whyTwice        = "a client certificate of that node has been approved in this resume"
	whyClosed       = "the time for it in this resume is over"
	whyOld          = "it was not made in this resume"
	whyNode         = "the cluster has no such node"
	whyMachine      = "no machine is known to be that node"
	whyAlive        = "that node is not known to be down"
	whyAddress      = "it asks for an address that is not the machine's"
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
