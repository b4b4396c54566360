package csr

import (
	"fmt"
	"strings"
)

// Reasons for leaving a request alone. Users read these, and the author of a request controls its
// content, so the reasons quote nothing from it.
const (
	reasonSigner       = "its signer does not sign certificates of nodes"
	reasonAnswered     = "it is already approved or denied"
	reasonFlood        = "there are too many open requests"
	reasonPEM          = "it is not exactly one certificate request in PEM"
	reasonDER          = "it cannot be parsed"
	reasonSignature    = "its signature is wrong"
	reasonOrganization = "its subject does not have the form of a node's subject"
	reasonCommonName   = "its subject does not name a node"
	reasonNames        = "it requests names that such a certificate may not have, or lacks names that it needs"
	reasonUsages       = "it requests usages other than a kubelet's"
	reasonUser         = "its requestor is not the bootstrap account of machines"
	reasonOther        = "its requestor is not the node in its subject"
	reasonGroups       = "its requestor has the wrong groups"
	reasonRenewal      = "it renews a node's own certificate: the cluster itself approves such requests"
	reasonOff          = "the cluster's machine approver is configured not to approve client certificates"
	reasonTwice        = "a client certificate of that node was already approved in this resume"
	reasonClosed       = "the approval window of this resume is over"
	reasonOld          = "it was not created in this resume"
	reasonNode         = "the cluster has no such node"
	reasonMachine      = "no known machine belongs to that node"
	reasonAlive        = "that node is not known to be down"
	reasonAddress      = "it requests an address that the machine does not have"
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
		if !v.Waiting {
			continue
		}
		if n++; n <= maxListed {
			told = append(told, fmt.Sprintf("%s (%s)", shortenForMessage(v.Request.Name), v.Reason))
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

// shortenForMessage shortens a name that others have chosen to a readable length.
func shortenForMessage(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return name[:maxNameLength] + "…"
}
