package pool

// reportInvalidCustomizations plans to report the customizations that do not apply to the pool. If
// another pool has reported one, it stays as reported: two pools with different messages would
// overwrite each other forever. An exception is a customization that is reserved for a recorded
// name: a process that has not seen its error, and is about to acquire it, must get a conflict.
func (d *draft) reportInvalidCustomizations() {
	for _, c := range d.Invalid {
		byAnother := c.Reported != "" && !c.ReportedByPool && !c.ReservedForName
		if c.Reported == c.Message || byAnother {
			continue
		}
		d.steps = append(d.steps, Step{Verb: ReportInvalid, Customization: c.Name, Cause: CustomizationInvalid, Reason: c.Message})
	}
}
