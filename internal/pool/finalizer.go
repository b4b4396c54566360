package pool

// isReleasable reports whether nothing is left of a pool that is being deleted.
func (d *draft) isReleasable() bool {
	return d.Settings.Deleting && !d.Settings.FinalizerMissing && len(d.Members) == 0
}

func (d *draft) removeFinalizer() {
	d.addStep(RemoveFinalizer, "", PoolDeleted, "the pool is being deleted and has no clusters")
}

// addFinalizer plans to add the finalizer: without it, the clusters would outlive the pool.
func (d *draft) addFinalizer() {
	if d.Settings.FinalizerMissing && !d.Settings.Deleting {
		d.addStep(AddFinalizer, "", FinalizerMissing, "the pool must exist until its clusters are deleted")
	}
}
