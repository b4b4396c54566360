package clusterpool

import hivev1 "hotspare.io/hotspare/api/hive/v1"

// Hurries reports whether a new cluster triggers an immediate pass over its pool.
func (r *Reconciler) Hurries(cd *hivev1.ClusterDeployment) bool { return !r.canBeDeferred(nil, cd) }
