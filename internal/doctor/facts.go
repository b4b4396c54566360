// Package doctor explains what a machine lacks to run hotspare: what the hub and its local clusters
// need, and what real pods on local clusters need. Package hostfacts reads the facts. It is pure.
package doctor

import "hotspare.io/hotspare/internal/embedded/nodeprograms"

// Facts are what is known about a machine. hostfacts.Read reads those of this machine.
type Facts struct {
	// OS is the operating system, in the words of GOOS.
	OS           string
	Distribution Distribution
	// Kernel is the release of the kernel, such as 6.1.0-18-amd64; "" if it is unknown.
	Kernel string
	// UserID is the effective user ID of the process.
	UserID int
	// UserName is the name of that user; "" if it is unknown.
	UserName string
	// UserNamespace is set if the process is in a user namespace that maps user IDs.
	UserNamespace bool
	// UserNamespaceError is the reason why the user, who is not root, cannot start a program in a user
	// namespace with namespaces of its own; "" if the user can.
	UserNamespaceError string
	// AppArmorRestricted is set if AppArmor takes all capabilities from this program in a user namespace
	// that it creates, as on Ubuntu 23.10 and newer.
	AppArmorRestricted bool
	// SubordinateUsers and SubordinateGroups are how many subordinate IDs the user has: see subuid(5).
	SubordinateUsers, SubordinateGroups Quantity
	Capabilities                        Capabilities
	// Programs are the programs that exist, by their names: see the constants.
	Programs map[string]Program
	// CNIFolders are the folders with CNI plugins that exist.
	CNIFolders []CNIFolder
	Cgroups    Cgroups
	// Overlay is whether the kernel supports the file system overlay.
	Overlay Support
	// Veth is whether the kernel supports pairs of veth interfaces, which connect pods to their node.
	Veth Support
	// VethError is the reason why none can be created, if the kernel does not support them.
	VethError string
	// TUNError is the reason why /dev/net/tun cannot be opened; "" if it can.
	TUNError string
	// InotifyInstances and InotifyWatches are the limits of one user.
	InotifyInstances, InotifyWatches Quantity
	DataFolder                       DataFolder
	// Memory is how many bytes new programs can use without swapping.
	Memory Quantity
	// OpenFiles is how many files a process can open after it has raised its limit.
	OpenFiles Quantity
	// LoopbackError is the reason why programs cannot connect to each other on 127.0.0.1; "" if they can.
	LoopbackError string
}

// Names of programs that real pods need.
const (
	Containerd     = nodeprograms.Containerd
	ContainerdShim = nodeprograms.ContainerdShim
	CTR            = nodeprograms.CTR
	Runc           = nodeprograms.Runc
	IPTables       = nodeprograms.IPTables
	NFT            = nodeprograms.NFT
	// These are needed only if the user is not root.
	NewUIDMap = "newuidmap"
	NewGIDMap = "newgidmap"
)

// CNIPlugins are the names of the CNI plugins that real pods need, sorted.
var CNIPlugins = nodeprograms.Plugins

// Distribution is a distribution of Linux, from os-release(5).
type Distribution struct {
	// ID is its ID, and Like are the IDs of the distributions that it derives from, closest first.
	ID   string
	Like []string
	// Name is its name and version for people.
	Name string
}

// Capabilities are the effective capabilities of the process: see capabilities(7).
type Capabilities struct {
	Effective uint64
	// Err is the reason why they are unknown; "" if they are known.
	Err string
}

// Program is a program that exists.
type Program struct {
	Path string
	// Version is the first line that the program prints with --version; "" if it was not asked.
	Version string
	// Err is the reason why the program does not print its version; "" if it does or was not asked.
	Err string
	// Lacks is the first of nodeprograms.KernelFeatures that IPTables or NFT cannot use in a network namespace of its own,
	// and LacksErr is the reason; "" if it can use all, or was not tried.
	Lacks, LacksErr string
}

// CNIFolder is a folder with CNI plugins.
type CNIFolder struct {
	Path string
	// Plugins are the names of the plugins of CNIPlugins that it contains.
	Plugins []string
}

// Cgroups are the cgroups that programs find in /sys/fs/cgroup.
type Cgroups struct {
	// Version is 1 or 2; 0 if no hierarchy is mounted.
	Version int
	// Controllers are the names of the controllers of that version.
	Controllers []string
	// ReadOnly is set if a hierarchy is mounted read-only.
	ReadOnly bool
	// Withheld are the controllers of version 2 that the group in /sys/fs/cgroup cannot pass on to new groups, because it
	// contains processes, as in a container with a namespace of its own.
	Withheld []string
	// Err is the reason why the hierarchies are unknown; "" if they are known.
	Err string
}

// Support is whether a kernel supports a feature.
type Support string

// Values of Support. The zero value stands for a kernel of which this is unknown.
const (
	Supported   Support = "Supported"
	Unsupported Support = "Unsupported"
)

// Quantity is a number that may be unknown.
type Quantity struct {
	Value int64
	// Err is the reason why the number is unknown; "" if it is known.
	Err string
}

// DataFolder is the data folder of the hub.
type DataFolder struct {
	Path string
	// Exists is set if the folder exists. The other fields are then about it, otherwise about the
	// folder in which it would be created.
	Exists bool
	// Err is the reason why it cannot be written; "" if it can.
	Err string
	// FileSystem is the type of its file system, such as ext4; "" if it is unknown.
	FileSystem string
	// Free is its free disk space in bytes.
	Free Quantity
}
