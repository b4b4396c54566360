package openstack

import (
	"cmp"
	"fmt"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/redact"
)

// server contains the fields of a Nova server that this package reads.
type server struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Task     string            `json:"OS-EXT-STS:task_state"`
	Metadata map[string]string `json:"metadata"`
	Tags     []string          `json:"tags"`
	Locked   bool              `json:"locked"`
	Fault    struct {
		Message string `json:"message"`
	} `json:"fault"`
}

// statusStates has every server status in Nova's API except those of deleted servers.
var statusStates = map[string]cloud.State{
	"ACTIVE":            cloud.Running,
	"PASSWORD":          cloud.Running, // it gets another password, and runs
	"MIGRATING":         cloud.Running, // to another host, and runs
	"BUILD":             cloud.Starting,
	"REBUILD":           cloud.Starting,
	"REBOOT":            cloud.Starting,
	"HARD_REBOOT":       cloud.Starting,
	"RESIZE":            cloud.Starting,
	"REVERT_RESIZE":     cloud.Starting,
	"SHUTOFF":           cloud.Stopped,
	"SHELVED":           cloud.Stopped,
	"SHELVED_OFFLOADED": cloud.Stopped,
	"PAUSED":            cloud.Stopped,
	"SUSPENDED":         cloud.Stopped,
	"ERROR":             cloud.Failed,
	"RESCUE":            cloud.Failed,
	"VERIFY_RESIZE":     cloud.Failed,
}

// statusDepths are the depths of the statuses in which a server keeps its memory.
var statusDepths = map[string]cloud.Depth{"PAUSED": cloud.DepthFreeze, "SUSPENDED": cloud.DepthSuspend}

// deletedStatuses are the statuses of deleted servers. Some clouds keep them for a while, so that
// they can be restored; the cluster no longer has them.
var deletedStatuses = map[string]bool{"DELETED": true, "SOFT_DELETED": true}

// taskStates has every task of a server in Nova. If a task has no state, the server's status
// determines it: the server is running, or not, while Nova copies its disk.
var taskStates = map[string]cloud.State{
	"scheduling":           cloud.Starting,
	"block_device_mapping": cloud.Starting,
	"networking":           cloud.Starting,
	"spawning":             cloud.Starting,
	"powering-on":          cloud.Starting,
	"unpausing":            cloud.Starting,
	"resuming":             cloud.Starting,
	"restoring":            cloud.Starting,
	"unshelving":           cloud.Starting,
	"unrescuing":           cloud.Starting,
	"rebooting":            cloud.Starting,
	"reboot_pending":       cloud.Starting,
	"reboot_started":       cloud.Starting,
	"rebooting_hard":       cloud.Starting,
	"reboot_pending_hard":  cloud.Starting,
	"reboot_started_hard":  cloud.Starting,
	"rebuilding":           cloud.Starting,

	"rebuild_block_device_mapping": cloud.Starting,
	"rebuild_spawning":             cloud.Starting,

	"powering-off":                  cloud.Stopping,
	"pausing":                       cloud.Stopping,
	"suspending":                    cloud.Stopping,
	"shelving":                      cloud.Stopping,
	"shelving_image_pending_upload": cloud.Stopping,
	"shelving_image_uploading":      cloud.Stopping,
	"shelving_offloading":           cloud.Stopping,
	"deleting":                      cloud.Stopping,
	"soft-deleting":                 cloud.Stopping,

	"image_snapshot":         "",
	"image_snapshot_pending": "",
	"image_pending_upload":   "",
	"image_uploading":        "",
	"image_backup":           "",
	"updating_password":      "",
	"migrating":              "",
	"rescuing":               "",
	"resize_prep":            "",
	"resize_migrating":       "",
	"resize_migrated":        "",
	"resize_finish":          "",
	"resize_reverting":       "",
	"resize_confirming":      "",
}

// machineState returns the state of the server and, for Failed and Unknown, the reason.
func (s *server) machineState() (cloud.State, string) {
	byTask, known := taskStates[s.Task]
	if s.Task != "" && !known {
		return cloud.Unknown, fmt.Sprintf("Nova reports task %q, which hotspare does not know", s.Task)
	}
	if byTask != "" {
		return byTask, ""
	}
	state := statusStates[s.Status]
	switch state {
	case "":
		return cloud.Unknown, fmt.Sprintf("Nova reports the status %q, which hotspare does not know", s.Status)
	case cloud.Failed:
		return state, s.failureReason()
	default:
		return state, ""
	}
}

// failureReason returns the reason and the remedy for a status that is neither running nor stopped.
func (s *server) failureReason() string {
	switch s.Status {
	case "RESCUE":
		return "RESCUE: the server was booted from another image: openstack server unrescue " + s.ID
	case "VERIFY_RESIZE":
		return "VERIFY_RESIZE: the server was resized: openstack server resize confirm " + s.ID + ", or revert"
	}
	why := cmp.Or(redact.Text(s.Fault.Message), "Nova gives no reason")
	return "ERROR: " + why + ": correct that, then run openstack server reboot --hard " + s.ID
}
