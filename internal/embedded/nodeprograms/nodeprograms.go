// Package nodeprograms lists the programs of this computer with which a node of a local cluster runs containers, and where
// the node finds them. hotspare doctor checks the same list.
package nodeprograms

import "path/filepath"

// Names of programs.
const (
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	CTR            = "ctr"
	Runc           = "runc"
	IPTables       = "iptables"
	NFT            = "nft"
)

// Required are the programs without which no node runs containers. A node also needs IPTables or NFT.
var Required = []string{Containerd, ContainerdShim, CTR, Runc}

// NATTrials are arguments with which IPTables and NFT succeed only if they can use the table nat of IPv4, and change
// nothing: kube-proxy requires this of the one that it uses. A program can run, and the kernel lack the table.
var NATTrials = map[string][]string{
	IPTables: {"-w", "5", "-t", "nat", "-S", "POSTROUTING"},
	NFT:      {"--check", "add table ip hotspare; add chain ip hotspare nat { type nat hook postrouting priority 100; }"},
}

// Folders are the folders with programs that a node has, in the order of its $PATH.
var Folders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Plugins are the names of the CNI plugins that a node uses, sorted. They must be in the same folder: containerd 1.6
// takes its plugins from one.
var Plugins = []string{"host-local", "loopback", "portmap", "ptp"}

// PluginFolders are where distributions install CNI plugins, in the order in which a node searches them.
var PluginFolders = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/local/libexec/cni"}

// otherNames are names that distributions give to programs: openSUSE installs ctr as containerd-ctr.
var otherNames = map[string][]string{CTR: {"containerd-ctr"}}

// Find returns the path of a program, or "" if there is none. isProgram reports whether there is a program at a path.
func Find(program string, isProgram func(path string) bool) string {
	for _, name := range append([]string{program}, otherNames[program]...) {
		for _, folder := range Folders {
			if path := filepath.Join(folder, name); isProgram(path) {
				return path
			}
		}
	}
	return ""
}

// FindPlugins returns the first folder with all Plugins, or "" if there is none. isProgram is as for Find.
func FindPlugins(isProgram func(path string) bool) string {
	for _, folder := range PluginFolders {
		if containsAll(folder, isProgram) {
			return folder
		}
	}
	return ""
}

func containsAll(folder string, isProgram func(path string) bool) bool {
	for _, plugin := range Plugins {
		if !isProgram(filepath.Join(folder, plugin)) {
			return false
		}
	}
	return true
}
