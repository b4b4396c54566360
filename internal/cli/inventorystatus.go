package cli

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// sense is what a status means to the reader, and what there is to do about it.
type sense struct{ meaning, remedy string }

// senseOf tells of an entry's status in words; of one that it does not know, nothing.
func (a *app) senseOf(e entry) sense {
	edit := "\n  " + a.next("kubectl edit clusterdeploymentcustomization %s", e.Name)
	editPool := "\n  " + a.next("kubectl edit clusterpool %s", e.Pool)
	switch e.Status {
	case "":
		return sense{notSeen, "Wait a moment. If it stays so, see the pool's plan and conditions:\n  " + a.next("pool describe %s", e.Pool)}
	case hivev1.InventoryAvailable:
		return sense{"free: the next cluster of this pool may take it", ""}
	case hivev1.InventoryReserved:
		return sense{"a cluster of this pool uses it, or is about to", ""}
	case hivev1.InventoryBrokenByConfiguration:
		return sense{
			"its patches do not apply to this pool's install-config",
			"Correct the patches:" + edit + "\nor the pool:" + editPool + "\nIt is tried again when one of them changes.",
		}
	case hivev1.InventoryBrokenByCloud:
		return sense{
			"its clusters failed to install, and no attempt is left",
			"See to its DNS records and addresses. Then change the patches:" + edit +
				"\nor, if they are right, take it off spec.inventory and list it again:" + editPool +
				"\nEither gives it new attempts.",
		}
	case hivev1.InventoryMissing:
		return sense{
			"listed, and not there, or being deleted",
			"Make it:\n  " + a.next("kubectl apply -f customization.yaml") + "\nor take it off spec.inventory:" + editPool,
		}
	case hivev1.InventoryUnavailable:
		return sense{"a cluster of another pool uses it", "Wait until it is free, or list more customizations:" + editPool}
	case hivev1.InventoryToBeDeleted:
		return sense{"on its way out; a cluster of this pool still uses it", a.untilFree(e, "deleted")}
	case hivev1.InventoryToBeUpdated:
		return sense{"changed since the cluster that uses it was made", a.untilFree(e, "replaced")}
	default:
		return sense{}
	}
}

// untilFree says what ends the use of an entry whose cluster is to go: an unclaimed
// one is dealt with by the pool, a claimed one by whoever has claimed it.
func (a *app) untilFree(e entry, fate string) string {
	if e.Claim == "" {
		return "Nothing: the pool sees to it that the cluster is " + fate + "."
	}
	return "Nothing: its cluster stays as it is until it is released:\n  " + a.next("claim release %s", e.Claim)
}
