package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// linux is the value of Facts.OS on which containers run.
const linux = "linux"

// goal begins the remedies of checks that are about real pods.
const goal = "To run real pods, "

// Limits of inotify that distributions usually set. Containers of many workers reach lower ones.
const (
	usualInotifyInstances = 128
	usualInotifyWatches   = 8192
	// clusterInotifyInstances is how many instances a cluster with one worker takes: its control plane 8, its worker 6, containerd 1.
	clusterInotifyInstances = 15
	// manyInotifyInstances is enough for many clusters, and for many pods with cgroups of version 2, where containerd takes an
	// instance for each container of a root worker.
	manyInotifyInstances = 1024
)

// checkContainers checks what real pods need in addition to the hub.
func (f Facts) checkContainers() []result {
	if f.OS != linux {
		cause := "real pods need Linux"
		return []result{newResult("Linux", Containers, Problem, "%s", cause).
			withRemedy(remedy.New(goal+"run hotspare on Linux, for example in a virtual machine.", ""), cause, "run hotspare on Linux")}
	}
	all := []result{f.checkUser()}
	if f.UserID == 0 {
		all = append(all, f.checkCapabilities())
	}
	all = append(all, f.checkPrograms()...)
	return append(all, f.checkCgroups(), f.checkOverlay(), f.checkInotify(), f.checkTUN(), f.checkVeth())
}

func (f Facts) checkUser() result {
	const check = "User"
	switch {
	case f.UserID != 0:
		return f.checkOrdinaryUser(check)
	case f.UserNamespace:
		do, solution := remedy.New(goal+"start hotspare as root of the machine, or as a user who is not root of a user namespace.", ""), "start hotspare as root of the machine"
		return newResult(check, Containers, Problem, "root of a user namespace: real pods need root of the machine, or an ordinary user").
			withRemedy(do, "hotspare runs as root of a user namespace only", solution)
	default:
		return newResult(check, Containers, OK, "root")
	}
}

// checkOrdinaryUser checks whether a user who is not root can create user namespaces with 65536 IDs.
func (f Facts) checkOrdinaryUser(check string) result {
	if f.UserNamespaceError != "" {
		cause := "user " + f.formatUser() + " cannot create a user namespace"
		do := remedy.New(goal+"let users create namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "+
			"kernel.apparmor_restrict_unprivileged_userns), or start hotspare as root.", "")
		return newResult(check, Containers, Problem, "%s: %s", cause, f.UserNamespaceError).
			withRemedy(do, cause, "start hotspare as root, or let users create namespaces")
	}
	if f.AppArmorRestricted {
		const cause = "AppArmor lets only root mount file systems in a user namespace"
		command := f.asRoot("sysctl kernel.apparmor_restrict_unprivileged_userns=0")
		return newResult(check, Containers, Problem, "user %s: %s", f.formatUser(), cause).
			withRemedy(remedy.New(goal+"lift the restriction until the next start of the machine, or start hotspare as root.", command), cause, formatRun(command))
	}
	for _, ids := range []struct {
		is         Quantity
		kind, flag string
	}{{f.SubordinateUsers, "user", "uids"}, {f.SubordinateGroups, "group", "gids"}} {
		if ids.is.Err != "" || ids.is.Value < neededSubordinates {
			cause := fmt.Sprintf("user %s has fewer than %d subordinate %s IDs", f.formatUser(), neededSubordinates, ids.kind)
			command := f.asRoot(fmt.Sprintf("usermod --add-sub%s 100000-165535 %s", ids.flag, f.formatUser()))
			return newResult(check, Containers, Problem, "%s", cause).
				withRemedy(remedy.New(goal+"give the user a range that no other user has.", command), cause, formatRun(command))
		}
	}
	return newResult(check, Containers, Note, "user %s: pods have no limits of memory, CPU and processes", f.formatUser())
}

// neededSubordinates is how many subordinate IDs images need in addition to root.
const neededSubordinates = 65535

func (f Facts) formatUser() string { return cmp.Or(f.UserName, strconv.Itoa(f.UserID)) }

// checkIDMap checks the programs that give a user namespace its IDs.
func (f Facts) checkIDMap() result {
	const check = "ID maps"
	if name := f.firstMissing(NewUIDMap, NewGIDMap); name != "" {
		return newMissing(check, name, "%s is missing", name)
	}
	return newResult(check, Containers, OK, "newuidmap and newgidmap")
}

// Bits of capabilities: see linux/capability.h.
const (
	capNetAdmin    = 12
	capSysAdmin    = 21
	capSysResource = 24
)

func (f Facts) checkCapabilities() result {
	const check = "Capabilities"
	if f.Capabilities.Err != "" {
		return newResult(check, Containers, Note, "they cannot be read: %s", f.Capabilities.Err)
	}
	var missing []string
	for _, c := range []struct {
		bit  uint
		name string
	}{{capSysAdmin, "CAP_SYS_ADMIN"}, {capNetAdmin, "CAP_NET_ADMIN"}} {
		if !f.Capabilities.has(c.bit) {
			missing = append(missing, c.name)
		}
	}
	switch {
	case len(missing) > 0:
		names := humanize.JoinWords(missing)
		do := remedy.New(goal+"start hotspare with "+names+": --privileged of a container, CapabilityBoundingSet of a systemd unit.", "")
		return newResult(check, Containers, Problem, "root lacks %s", names).withRemedy(do, "root lacks "+names, "start hotspare with "+names)
	case !f.Capabilities.has(capSysResource):
		return newResult(check, Containers, Note, "root lacks CAP_SYS_RESOURCE: out-of-memory scores of pods are not set")
	default:
		return newResult(check, Containers, OK, "CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_SYS_RESOURCE")
	}
}

// CanIsolate reports whether the user can start a program in a network namespace of its own and configure that.
// Without it, no worker runs containers.
func (f Facts) CanIsolate() bool {
	if f.UserID != 0 {
		return f.UserNamespaceError == "" && !f.AppArmorRestricted
	}
	return f.Capabilities.has(capSysAdmin) && f.Capabilities.has(capNetAdmin)
}

func (c Capabilities) has(bit uint) bool { return c.Effective>>bit&1 == 1 }

// Controllers of cgroups: runc and the kubelet do not start pods without those that are needed.
var (
	neededControllers = map[int][]string{
		1: {"cpu", "cpuacct", "cpuset", "devices", "memory"},
		2: {"cpu", "cpuset", "memory"},
	}
	// limitingControllers limit pods if they exist.
	limitingControllers = []string{"pids"}
)

func (f Facts) checkCgroups() result {
	const check = "cgroups"
	c := f.Cgroups
	switch {
	case c.Err != "":
		do := remedy.New(goal+"mount /proc and /sys.", "")
		return newResult(check, Containers, Problem, "they cannot be read: %s", c.Err).withRemedy(do, "the cgroups cannot be read", "mount /proc and /sys")
	case c.Version == 0:
		command := f.asRoot("mount -t cgroup2 cgroup2 /sys/fs/cgroup")
		cause := "no cgroups are mounted in /sys/fs/cgroup"
		return newResult(check, Containers, Problem, "%s", cause).
			withRemedy(remedy.New(goal+"mount the cgroups.", command), cause, formatRun(command))
	case c.ReadOnly:
		cause := "the cgroups are mounted read-only"
		return newResult(check, Containers, Problem, "version %d, mounted read-only, as in a container without privileges", c.Version).
			withRemedy(remedy.New(goal+"start hotspare outside of a container, or in one with --privileged.", ""), cause, "mount them writable")
	}
	if missing := subtractWords(neededControllers[c.Version], c.Controllers); len(missing) > 0 {
		names := formatCount(missing, "controller")
		do := remedy.New(goal+"turn on the "+names+" of cgroups with kernel parameters: on a Raspberry Pi, add cgroup_enable=memory to cmdline.txt, and restart.", "")
		return newResult(check, Containers, Problem, "version %d without the %s", c.Version, names).
			withRemedy(do, "the cgroups lack the "+names, "turn on the "+names+" with kernel parameters")
	}
	if f.UserID == 0 && len(intersectWords(neededControllers[c.Version], c.Withheld)) > 0 { // workers of other users have no cgroups
		cause := "the group /sys/fs/cgroup contains processes and cannot pass its controllers on"
		do := remedy.New(goal+"start the container in which hotspare runs with --cgroupns=host, or move all processes in /sys/fs/cgroup/cgroup.procs "+
			"to a child group before you start hotspare.", "")
		return newResult(check, Containers, Problem, "version %d, but %s, as in a container", c.Version, cause).
			withRemedy(do, cause, "start the container with --cgroupns=host")
	}
	if missing := subtractWords(limitingControllers, c.Controllers); len(missing) > 0 {
		return newResult(check, Containers, Note, "version %d without the %s: the number of processes of a pod is not limited", c.Version, formatCount(missing, "controller"))
	}
	return newResult(check, Containers, OK, "version %d", c.Version)
}

// unsuitableFileSystems cannot contain the upper folder of an overlay.
var unsuitableFileSystems = []string{"overlay", "nfs", "cifs", "smb2", "9p", "vfat", "fuse", "ecryptfs"}

// minUserOverlayKernel is the first kernel that lets root of a user namespace mount overlay.
var minUserOverlayKernel = version{major: 5, minor: 11}

func (f Facts) isKernelBefore(v version) bool {
	is, _, known := parseVersion(f.Kernel)
	return known && is.isBefore(v)
}

func (f Facts) checkOverlay() result {
	const check = "overlay"
	switch fs := f.DataFolder.FileSystem; {
	case f.Overlay == Unsupported:
		cause := "the kernel has no file system overlay"
		return newResult(check, Containers, Problem, "%s", cause).
			withRemedy(remedy.New(goal+"use a kernel with overlay (CONFIG_OVERLAY_FS).", ""), cause, "use a kernel with overlay")
	case f.UserID != 0 && f.isKernelBefore(minUserOverlayKernel):
		cause := fmt.Sprintf("kernel %s lets only root use the file system overlay", f.Kernel)
		return newResult(check, Containers, Problem, "%s", cause).
			withRemedy(remedy.New(goal+"use kernel 5.11 or newer, or start hotspare as root.", ""), cause, "use kernel 5.11 or newer, or start hotspare as root")
	case slices.Contains(unsuitableFileSystems, fs):
		cause := fmt.Sprintf("images cannot be stored on %s, the file system of %s", fs, f.DataFolder.Path)
		return newResult(check, Containers, Problem, "%s", cause).
			withRemedy(remedy.New(goal+"choose a folder on a disk of this machine with --data-dir.", ""), cause, "choose another data folder with --data-dir")
	case f.Overlay != Supported:
		return newResult(check, Containers, Note, "the file system overlay is not loaded, and may be missing").
			withRemedy(remedy.New(goal+"load it.", f.asRoot("modprobe overlay")), "", "")
	default:
		return newResult(check, Containers, OK, "the kernel supports it")
	}
}

func (f Facts) checkInotify() result {
	const check = "inotify"
	for _, limit := range []struct {
		name  string
		is    Quantity
		usual int64
	}{{"max_user_instances", f.InotifyInstances, usualInotifyInstances}, {"max_user_watches", f.InotifyWatches, usualInotifyWatches}} {
		if limit.is.Err != "" {
			return newResult(check, Containers, Note, "%s cannot be read: %s", limit.name, limit.is.Err)
		}
		if limit.is.Value < limit.usual {
			command := f.asRoot(fmt.Sprintf("sysctl -w fs.inotify.%s=%d", limit.name, limit.usual))
			return newResult(check, Containers, Note, "%s is %d: containers may report \"too many open files\"", limit.name, limit.is.Value).
				withRemedy(remedy.New("To run many real pods, raise the limit.", command), "", "")
		}
	}
	if f.InotifyInstances.Value < manyInotifyInstances {
		command := f.asRoot(fmt.Sprintf("sysctl -w fs.inotify.max_user_instances=%d", manyInotifyInstances))
		uses := fmt.Sprintf("a cluster with one worker takes about %d", clusterInotifyInstances)
		if f.UserID == 0 && f.Cgroups.Version == 2 {
			uses += ", and with cgroups of version 2 each container takes one"
		}
		return newResult(check, Containers, Note, "max_user_instances is %d: %s", f.InotifyInstances.Value, uses).
			withRemedy(remedy.New("To run many clusters with real pods, raise the limit.", command), "", "")
	}
	return newResult(check, Containers, OK, "%d instances, %d watches", f.InotifyInstances.Value, f.InotifyWatches.Value)
}

// checkTUN checks the device that connects a worker to the network of its cluster.
func (f Facts) checkTUN() result {
	const check, device = "TUN device", "/dev/net/tun"
	if f.TUNError == "" {
		return newResult(check, Containers, OK, "%s can be opened", device)
	}
	cause := device + " cannot be opened"
	command := f.asRoot("modprobe tun")
	if f.UserID != 0 {
		command = f.asRoot("chmod 666 " + device) // as udev does on most distributions
	}
	return newResult(check, Containers, Problem, "%s: %s", cause, f.TUNError).
		withRemedy(remedy.New(goal+"make the device usable.", command), cause, formatRun(command))
}

// checkVeth checks the interfaces that connect pods to their node.
func (f Facts) checkVeth() result {
	const check = "veth"
	switch f.Veth {
	case Supported:
		return newResult(check, Containers, OK, "the kernel supports it")
	case Unsupported:
		cause := "the kernel cannot create veth interfaces"
		command := f.asRoot("modprobe veth")
		return newResult(check, Containers, Problem, "%s: %s", cause, f.VethError).
			withRemedy(remedy.New(goal+"load the module veth, or use a kernel that has it (CONFIG_VETH).", command), cause, formatRun(command))
	default:
		return newResult(check, Containers, Note, "hotspare could not try it: the kernel may not support it")
	}
}

// subtractWords returns the words that are not in the other list.
func subtractWords(words, other []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(other, w) {
			out = append(out, w)
		}
	}
	return out
}

// intersectWords returns the words that are in the other list, too.
func intersectWords(words, other []string) []string {
	return subtractWords(words, subtractWords(words, other))
}

// formatCount formats words with their noun: "controller memory", "controllers cpu and memory".
func formatCount(words []string, noun string) string {
	if len(words) > 1 {
		noun += "s"
	}
	return noun + " " + humanize.JoinWords(words)
}
