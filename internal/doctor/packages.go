package doctor

import (
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/explain/remedy"
)

// part is a part of what real pods need that packages of distributions contain.
type part int

const (
	containerdPart part = iota // with its shim and ctr
	runcPart
	cniPart
	filterPart
	idMapPart // for users who are not root
)

// packageManager installs the packages of a family of distributions.
type packageManager struct {
	// ids are the IDs of distributions in os-release.
	ids     []string
	command string
	// names are the names of the packages, by part. A part may be in several packages.
	names [5]string
	// hint is a sentence for the user; it may be empty.
	hint string
}

var packageManagers = []packageManager{
	{ids: []string{"debian", "ubuntu"}, command: "apt-get install", names: [5]string{"containerd", "runc", "containernetworking-plugins", "iptables", "uidmap"}},
	{ids: []string{"fedora"}, command: "dnf install", names: [5]string{"containerd", "runc", "containernetworking-plugins", "iptables-nft", "shadow-utils"}},
	{
		// containerd.io contains runc, and conflicts with the package of that name.
		ids: []string{"rhel", "centos"}, command: "dnf install", names: [5]string{"containerd.io", "containerd.io", "containernetworking-plugins", "iptables-nft", "shadow-utils"},
		hint: "containerd.io is in Docker's package repository: https://docs.docker.com/engine/install/rhel/",
	},
	{ids: []string{"arch"}, command: "pacman -S", names: [5]string{"containerd", "runc", "cni-plugins", "iptables", "shadow"}},
	{ids: []string{"alpine"}, command: "apk add", names: [5]string{"containerd containerd-ctr", "runc", "cni-plugins", "iptables", "shadow-subids"}},
	{ids: []string{"opensuse", "suse", "sles"}, command: "zypper install", names: [5]string{"containerd containerd-ctr", "runc", "cni-plugins", "iptables", "shadow"}},
}

// programsOfParts are the names of the parts for distributions whose packages are unknown.
var programsOfParts = [5]string{
	"containerd with containerd-shim-runc-v2 and ctr", "runc", "the CNI plugins (https://github.com/containernetworking/plugins)", "iptables",
	"newuidmap and newgidmap",
}

// findPackageManager returns the package manager of the distribution, or else that of the closest
// distribution from which it derives.
func (d Distribution) findPackageManager() (packageManager, bool) {
	for _, id := range append([]string{d.ID}, d.Like...) {
		// openSUSE has an ID for each edition, such as opensuse-leap.
		id, _, _ = strings.Cut(id, "-")
		for _, m := range packageManagers {
			if slices.Contains(m.ids, id) {
				return m, true
			}
		}
	}
	return packageManager{}, false
}

// installation returns the remedy that installs parts, and the clause for it.
func (f Facts) installation(parts []part) (do *remedy.Remedy, solution string) {
	m, known := f.Distribution.findPackageManager()
	if !known {
		var names []string
		for _, p := range parts {
			names = append(names, programsOfParts[p])
		}
		return remedy.New(goal+"install "+strings.Join(names, ", ")+".", ""), "install what is missing"
	}
	command, text := m.command, goal+"install the missing packages."
	var names []string
	for _, p := range parts {
		if !slices.Contains(names, m.names[p]) {
			names = append(names, m.names[p])
		}
	}
	if m.hint != "" && slices.Contains(names, m.names[containerdPart]) {
		text += " " + m.hint
	}
	command = f.asRoot(command + " " + strings.Join(names, " "))
	return remedy.New(text, command), formatRun(command)
}
