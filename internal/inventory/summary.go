package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ValidCondition returns the reason and the message of the pool's condition InventoryValid for the
// listed customizations. If all of them can be used, reason and message are about those whose last
// cluster failed to install; they are empty if there are none.
func (p Plan) ValidCondition(listed []string, size int) (reason, message string) {
	names := slices.Compact(slices.Sorted(slices.Values(listed)))
	usable := 0
	var tried []string
	wrong := map[hivev1.InventoryStatus][]string{}
	for _, name := range names {
		e := p.Entries[name]
		switch e.Status {
		case hivev1.InventoryAvailable, hivev1.InventoryReserved, hivev1.InventoryToBeUpdated:
			usable++
			if e.Failed != "" {
				tried = append(tried, fmt.Sprintf("%s (attempts left: %d)", name, e.Attempts))
			}
		case hivev1.InventoryBrokenByConfiguration:
			wrong[e.Status] = append(wrong[e.Status], name+" ("+e.Message+")")
		case hivev1.InventoryBrokenByCloud, hivev1.InventoryMissing:
			wrong[e.Status] = append(wrong[e.Status], name)
		}
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(wrong)) {
		parts = append(parts, statusLabels[status]+" "+strings.Join(wrong[status], ", "))
	}
	if usable < size {
		parts = append(parts, fmt.Sprintf("%d of %d can be used, and the pool's size is %d: add customizations, or lower size", usable, len(names), size))
	}
	switch {
	case len(wrong) > 0:
		return hivev1.ReasonInventoryInvalid, strings.Join(parts, "; ")
	case len(parts) > 0:
		return hivev1.ReasonInventoryTooSmall, strings.Join(parts, "; ")
	}
	if len(tried) > 0 {
		return hivev1.ReasonInventoryValid, "the last cluster failed to install with " + strings.Join(tried, ", ")
	}
	return hivev1.ReasonInventoryValid, ""
}

// statusLabels are the enhancement's spellings of the statuses.
var statusLabels = map[hivev1.InventoryStatus]string{
	hivev1.InventoryBrokenByConfiguration: "broken by configuration:",
	hivev1.InventoryBrokenByCloud:         "broken by cloud:",
	hivev1.InventoryMissing:               "missing:",
}
