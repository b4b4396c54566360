package clusterstate

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ClaimPriority returns the priority in effect of a claim that waits: the one that the controller has
// reported, within the limits of ClaimPolicies, and that of the ClaimSet for a claim of a set. Before
// the first report, and for a claim that has a cluster, it is the claim's own priority. asked is the
// claim's own priority; 0 if it has none, or one that is not valid.
func ClaimPriority(c *hivev1.ClusterClaim) (effective, asked int) {
	asked, _ = hivev1.ParsePriority(c.Annotations[hivev1.AnnotationPriority])
	if c.Status.Priority != nil {
		return int(*c.Status.Priority), asked
	}
	return asked, asked
}
