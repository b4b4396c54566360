package inventoryview

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// A StatusExplanation explains an entry's status to the user, and what to do about it: sentences
// that follow each other, some with a command. Both fields are empty for an unknown status.
type StatusExplanation struct {
	Meaning string
	Remedy  []remedy.Remedy
}

// ExplainStatus explains the entry's status.
func (e Entry) ExplainStatus(formatCommand remedy.CommandFormatter) StatusExplanation {
	edit := formatCommand(e.Namespace, "kubectl edit clusterdeploymentcustomization %s", e.Name)
	editPool := formatCommand(e.Namespace, "kubectl edit clusterpool %s", e.Pool)
	switch e.Status {
	case "":
		return StatusExplanation{notSeen, []remedy.Remedy{
			{Text: "Wait a moment. If it stays so, see the pool's plan and conditions:", Command: formatCommand(e.Namespace, "pool describe %s", e.Pool)},
		}}
	case hivev1.InventoryAvailable:
		return StatusExplanation{Meaning: "free: the next cluster of this pool may take it"}
	case hivev1.InventoryReserved:
		return StatusExplanation{Meaning: "a cluster of this pool uses it, or is about to"}
	case hivev1.InventoryBrokenByConfiguration:
		return StatusExplanation{"its patches do not apply to this pool's install-config", []remedy.Remedy{
			{Text: "Correct the patches:", Command: edit},
			{Text: "or the pool:", Command: editPool},
			{Text: "hotspare retries when one of them changes."},
		}}
	case hivev1.InventoryBrokenByCloud:
		return StatusExplanation{"its clusters failed to install, and no attempt is left", []remedy.Remedy{
			{Text: "Check its DNS records and addresses. Then change the patches:", Command: edit},
			{Text: "or, if they are right, remove it from spec.inventory and add it again:", Command: editPool},
			{Text: "Either gives it new attempts."},
		}}
	case hivev1.InventoryMissing:
		return StatusExplanation{"in spec.inventory, but it does not exist or is being deleted", []remedy.Remedy{
			{Text: "Create it:", Command: formatCommand(e.Namespace, "kubectl apply -f customization.yaml")},
			{Text: "or remove it from spec.inventory:", Command: editPool},
		}}
	case hivev1.InventoryUnavailable:
		return StatusExplanation{"a cluster of another pool uses it", []remedy.Remedy{
			{Text: "Wait until it is free, or list more customizations:", Command: editPool},
		}}
	case hivev1.InventoryToBeDeleted:
		return StatusExplanation{"being deleted, or no longer in spec.inventory; a cluster of this pool still uses it", e.releaseRemedies("deletes", formatCommand)}
	case hivev1.InventoryToBeUpdated:
		return StatusExplanation{"changed since the cluster that uses it was created", e.releaseRemedies("replaces", formatCommand)}
	default:
		return StatusExplanation{}
	}
}

// releaseRemedies returns what ends the use of an entry whose cluster must be replaced or deleted:
// the pool handles an unclaimed cluster, the owner of the claim a claimed one.
func (e Entry) releaseRemedies(fate string, formatCommand remedy.CommandFormatter) []remedy.Remedy {
	if e.Claim == "" {
		return []remedy.Remedy{{Text: "Nothing: the pool " + fate + " the cluster.", Wait: true}}
	}
	return []remedy.Remedy{
		{Text: "Nothing: its cluster stays as it is until its claim is released:", Command: formatCommand(e.Namespace, "claim release %s", e.Claim)},
	}
}
