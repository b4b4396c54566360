// Package nodeprograms lists the programs of this computer with which a node of a local cluster runs containers, and where
// the node finds them. hotspare doctor checks the same list.
package nodeprograms

import (
	"path/filepath"
	"slices"
	"strings"
)

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

// KernelFeature is a feature of the kernel that kube-proxy uses by IPTables or NFT. A program can run, and the kernel lack
// the feature.
type KernelFeature struct {
	// Name is the name in a sentence: the match recent.
	Name string
	// Modules are the arguments of modprobe that load the modules of the kernel with the feature of IPTables.
	Modules string
	// Only is what does not work without the feature; empty if no Service works.
	Only string
	// Trial are arguments with which the program succeeds only if it can use the feature. They can add a rule: the program
	// must run in a network namespace that ends afterwards.
	Trial []string
}

// NAT is the name of the first feature: a kernel without it has no rule of kube-proxy.
const NAT = "the table nat"

// KernelFeatures are the features that kube-proxy uses in IPv4, by program, in the order in which they are tried: those without
// which no Service works first.
var KernelFeatures = map[string][]KernelFeature{
	IPTables: {
		{Name: NAT, Modules: "-a nft_chain_nat nft_compat", Trial: []string{"-w", "5", "-t", "nat", "-S", "POSTROUTING"}},
		newRule("the match comment", "xt_comment", "-A OUTPUT -m comment --comment hotspare"),
		newRule("the match conntrack", "xt_conntrack", "-A OUTPUT -m conntrack --ctstate NEW"),
		newRule("the match addrtype", "xt_addrtype", "-A OUTPUT -m addrtype --src-type LOCAL"),
		newRule("the match mark", "xt_mark", "-A OUTPUT -m mark --mark 0x4000/0x4000"),
		newRule("the match tcp", "xt_tcpudp", "-A OUTPUT -p tcp -m tcp --dport 80"),
		newRule("the match statistic", "xt_statistic", "-A OUTPUT -m statistic --mode random --probability 0.5"),
		newRule("the target REJECT", "ipt_REJECT", "-A OUTPUT -j REJECT"),
		newRule("the target MARK", "xt_mark", "-t nat -A OUTPUT -j MARK --or-mark 0x4000"),
		newRule("the target DNAT", "xt_nat", "-t nat -A OUTPUT -p tcp -j DNAT --to-destination 10.128.0.1:80"),
		newRule("the target MASQUERADE", "xt_MASQUERADE", "-t nat -A POSTROUTING -j MASQUERADE"),
		affinity(newRule("the match recent", "xt_recent", "-A OUTPUT -m recent --name hotspare --rcheck --seconds 10 --reap")),
	},
	NFT: {
		{Name: NAT, Trial: checkRules("add chain ip hotspare nat { type nat hook postrouting priority 100; }")},
		{Name: "the expressions for NAT", Trial: checkRules(natRules...)},
		{Name: "the expressions for Services", Trial: checkRules(serviceRules...)},
	},
}

// Combined are arguments of trials that together use all features of KernelFeatures without which no Service works: if they
// succeed, these need not be tried one after the other.
var Combined = map[string][][]string{
	IPTables: {
		newRule("", "", "-t nat -A POSTROUTING -p tcp -m tcp --dport 80 -m comment --comment hotspare -m conntrack --ctstate NEW "+
			"-m addrtype --src-type LOCAL -m mark --mark 0x4000/0x4000 -m statistic --mode random --probability 0.5 -j MASQUERADE").Trial,
		newRule("", "", "-t nat -A OUTPUT -j MARK --or-mark 0x4000").Trial,
		newRule("", "", "-t nat -A OUTPUT -p tcp -j DNAT --to-destination 10.128.0.1:80").Trial,
		newRule("", "", "-A OUTPUT -j REJECT").Trial,
	},
	NFT: {checkRules(slices.Concat(natRules, serviceRules)...)},
}

// natRules and serviceRules are commands of NFT with the expressions that kube-proxy uses.
var (
	natRules = []string{
		"add chain ip hotspare in { type nat hook prerouting priority -100; }",
		"add chain ip hotspare out { type nat hook postrouting priority 100; }",
		"add rule ip hotspare in ct state new meta l4proto tcp dnat to 10.128.0.1:80",
		"add rule ip hotspare out mark and 0x4000 != 0 masquerade fully-random",
	}
	serviceRules = []string{
		"add chain ip hotspare endpoints",
		"add chain ip hotspare services",
		"add map ip hotspare ports { type inet_proto . inet_service : verdict; }",
		"add set ip hotspare clients { type ipv4_addr; flags dynamic,timeout; timeout 10s; }",
		"add rule ip hotspare services fib daddr type local meta l4proto . th dport vmap @ports",
		"add rule ip hotspare services numgen random mod 2 vmap { 0 : goto endpoints, 1 : goto endpoints }",
		"add rule ip hotspare services ip saddr @clients mark set mark or 0x4000",
		"add rule ip hotspare endpoints update @clients { ip saddr }",
		"add rule ip hotspare endpoints reject",
	}
)

// affinity returns a feature that only Services with session affinity need.
func affinity(f KernelFeature) KernelFeature {
	f.Only = "Services with session affinity"
	return f
}

// FindMissing returns the first of KernelFeatures that a program cannot use, and why. try runs the program with arguments. With
// needed, it tries only those without which no Service works.
func FindMissing(program string, needed bool, try func(arguments []string) error) (missing KernelFeature, reason error) {
	combined := true
	for _, trial := range Combined[program] {
		combined = combined && try(trial) == nil
	}
	for _, f := range KernelFeatures[program] {
		if f.Only == "" && combined || f.Only != "" && needed {
			continue
		}
		if err := try(f.Trial); err != nil {
			return f, err
		}
	}
	return KernelFeature{}, nil
}

// newRule returns a feature of IPTables that a rule uses.
func newRule(name, module, rule string) KernelFeature {
	return KernelFeature{Name: name, Modules: module, Trial: append([]string{"-w", "5"}, strings.Fields(rule)...)}
}

// checkRules returns the arguments with which NFT lets the kernel check commands about a table, and changes nothing.
func checkRules(commands ...string) []string {
	return []string{"--check", strings.Join(append([]string{"add table ip hotspare"}, commands...), "; ")}
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
