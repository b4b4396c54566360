package pool

// setPowerStates starts one cluster for each waiting claim and keeps the oldest runningCount of the
// others running. It hibernates the rest.
func (d *draft) setPowerStates() {
	list := d.unclaimedMembers(Installing, Standby, Assignable)
	d.reserveForClaims(list)
	spares := d.chooseRunningSpares(list)
	// notRunning is the number of spares that do not run yet.
	notRunning := min(d.Settings.RunningCount, d.Settings.Size)
	for _, m := range list {
		if m.Running && spares[m.Name] {
			notRunning--
		}
	}
	for _, m := range list {
		switch {
		case d.reservedForClaims[m.Name]:
			d.setPower(m, Running, ClaimWaiting, "claims are waiting")
		case spares[m.Name]:
			d.setPower(m, Running, BelowRunningCount, "runningCount is %d", d.Settings.RunningCount)
		case m.isComingUp():
			// If it hibernated now, its hang would never be detected, and the next claim would run
			// into it.
		case notRunning > 0 && m.Running && m.Wanted == Running:
			notRunning-- // it stands in until the chosen spare runs
		default:
			d.setPower(m, Hibernating, AboveRunningCount, "runningCount is %d, and enough other clusters run", d.Settings.RunningCount)
		}
	}
}

// chooseRunningSpares chooses the clusters that run without a claim: the oldest, whether they are
// installed or not (enhancement: running clusters). A struggling cluster takes up no place: the
// next cluster is started in addition to it.
func (d *draft) chooseRunningSpares(list []*Member) map[string]bool {
	out := map[string]bool{}
	places := min(d.Settings.RunningCount, d.Settings.Size)
	for _, m := range list {
		if places <= 0 {
			break
		}
		if d.reservedForClaims[m.Name] {
			continue
		}
		out[m.Name] = true
		if !m.isStruggling(d.Settings, d.Now) {
			places--
		}
	}
	return out
}

func (d *draft) setPower(m *Member, want Power, cause Cause, reason string, args ...any) {
	if m.Wanted == want {
		return
	}
	verb := Start
	if want == Hibernating {
		verb = Hibernate
	}
	d.addStep(verb, m.Name, cause, reason, args...)
}
