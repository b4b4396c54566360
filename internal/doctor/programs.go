package doctor

import (
	"fmt"
	"strings"

	"hotspare.io/hotspare/internal/embedded/nodeprograms"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Lowest versions with which real pods run. kube-proxy requires those of nft and of the kernel in its
// nftables mode.
var (
	minContainerd = version{major: 1, minor: 6}
	minNFT        = version{major: 1, minor: 0, patch: 1}
	minNFTKernel  = version{major: 5, minor: 13}
)

// severalPlugins begins the name of several missing plugins.
const severalPlugins = "the CNI plugins"

// checkPrograms checks the programs that packages of the distribution contain. One remedy installs
// all that is missing.
func (f Facts) checkPrograms() []result {
	all := []result{f.checkContainerd(), f.checkRunc(), f.checkCNI(), f.checkPacketFilter()}
	if f.UserID != 0 {
		all = append(all, f.checkIDMap())
	}
	var parts []part
	for p, r := range all { // in the order of the constants of part
		if len(r.missing) > 0 {
			parts = append(parts, part(p))
		}
	}
	if len(parts) == 0 {
		return all
	}
	do, solution := f.installation(parts)
	for i := range all {
		if len(all[i].missing) > 0 {
			all[i] = all[i].withRemedy(do, "", solution)
		}
	}
	return all
}

// newMissing returns the result about a part that has to be installed.
func newMissing(check, name, format string, args ...any) result {
	r := newResult(check, Containers, Problem, format, args...)
	r.missing = []string{name}
	return r
}

// newBroken returns the result about a program that does not print its version.
func newBroken(check, name string, p Program) result {
	do := remedy.New(goal+"make \""+p.Path+" --version\" work, or install "+name+" again.", "")
	return newResult(check, Containers, Problem, "%s --version fails: %s", p.Path, p.Err).
		withRemedy(do, name+" does not run", "install "+name+" again")
}

func (f Facts) checkContainerd() result {
	p, found := f.Programs[Containerd]
	missing := f.firstMissing(ContainerdShim, CTR)
	v, text, known := parseVersion(p.Version)
	switch {
	case !found:
		return newMissing(Containerd, Containerd, "missing")
	case missing != "":
		return newMissing(Containerd, missing, "%s exists, but its program %s is missing", p.Path, missing)
	case p.Err != "":
		return newBroken(Containerd, Containerd, p)
	case !known:
		return newResult(Containerd, Containers, Note, "%s prints no version that hotspare can read (%.40q); real pods need 1.6 or newer", p.Path, p.Version)
	case v.isBefore(minContainerd):
		do := remedy.New(goal+"upgrade containerd to 1.6 or newer. If your distribution has none, upgrade the distribution, or see https://containerd.io/downloads/", "")
		return newResult(Containerd, Containers, Problem, "%s is too old (%s): real pods need 1.6 or newer", text, p.Path).
			withRemedy(do, "containerd "+text+" is older than 1.6", "upgrade containerd")
	default:
		return newResult(Containerd, Containers, OK, "%s (%s)", text, p.Path)
	}
}

// firstMissing returns the first of the programs that does not exist; "" if all exist.
func (f Facts) firstMissing(names ...string) string {
	for _, name := range names {
		if _, found := f.Programs[name]; !found {
			return name
		}
	}
	return ""
}

func (f Facts) checkRunc() result {
	p, found := f.Programs[Runc]
	switch {
	case !found:
		return newMissing(Runc, Runc, "missing")
	case p.Err != "":
		return newBroken(Runc, Runc, p)
	default:
		return newResult(Runc, Containers, OK, "%s", p.describe())
	}
}

// describe returns the version of a program, if it is known, and its path.
func (p Program) describe() string {
	if _, text, known := parseVersion(p.Version); known {
		return fmt.Sprintf("%s (%s)", text, p.Path)
	}
	return p.Path
}

// CompleteCNIFolder returns the first folder that contains all CNI plugins that real pods need; "" if
// there is none. containerd 1.6 takes its plugins from one folder.
func (f Facts) CompleteCNIFolder() string {
	folder, missing := f.findCNIFolder()
	if len(missing) > 0 {
		return ""
	}
	return folder
}

// findCNIFolder returns the folder that lacks the fewest CNI plugins, and those that it lacks.
func (f Facts) findCNIFolder() (folder string, missing []string) {
	missing = CNIPlugins
	for _, candidate := range f.CNIFolders {
		if lacks := subtractWords(CNIPlugins, candidate.Plugins); len(lacks) < len(missing) {
			folder, missing = candidate.Path, lacks
		}
	}
	return folder, missing
}

func (f Facts) checkCNI() result {
	const check = "CNI plugins"
	folder, missing := f.findCNIFolder()
	switch len(missing) {
	case 0:
		return newResult(check, Containers, OK, "%s", folder)
	case len(CNIPlugins):
		return newMissing(check, severalPlugins, "missing")
	default:
		names := formatCount(missing, "plugin")
		return newMissing(check, "the CNI "+names, "%s lacks the %s", folder, names)
	}
}

// checkPacketFilter checks that kube-proxy can use iptables, or else nft.
func (f Facts) checkPacketFilter() result {
	const check = "Packet filter"
	tables, hasTables := f.Programs[IPTables]
	nft, hasNFT := f.Programs[NFT]
	obstacle := f.nftObstacle(nft)
	switch {
	case hasTables && tables.Err == "" && (tables.Lacks == "" || tables.missingFeature(IPTables).Only != ""):
		return f.newUsableFilter(check, tables)
	case hasNFT && obstacle == "":
		return newResult(check, Containers, OK, "%s %s", NFT, nft.describe())
	case hasTables && tables.Err != "":
		return newBroken(check, IPTables, tables)
	case hasTables && hasNFT:
		return f.newWithoutFeature(check, tables, obstacle)
	case hasTables:
		return f.newWithoutFeature(check, tables, "nft is missing")
	case hasNFT:
		return newMissing(check, IPTables, "%s is missing, and %s", IPTables, obstacle)
	default:
		return newMissing(check, IPTables, "neither %s nor %s exists", IPTables, NFT)
	}
}

// newUsableFilter returns the result about an iptables that Services can use.
func (f Facts) newUsableFilter(check string, p Program) result {
	if p.Lacks == "" {
		return newResult(check, Containers, OK, "%s %s", IPTables, p.describe())
	}
	return newResult(check, Containers, Note, "%s %s cannot use %s of the kernel: %s do not work, unless you run %q", IPTables, p.describe(), p.Lacks,
		p.missingFeature(IPTables).Only, f.asRoot("modprobe "+findModules(p)))
}

// newWithoutFeature returns the result about an iptables that cannot use a feature of the kernel; nftObstacle is why nft
// cannot be used instead.
func (f Facts) newWithoutFeature(check string, tables Program, nftObstacle string) result {
	command := f.asRoot("modprobe " + findModules(tables))
	what := "load the module of the kernel, install nft, or use a kernel with " + tables.Lacks + "."
	if tables.Lacks == nodeprograms.NAT {
		what = "load the modules of the kernel for NAT, install nft, or use a kernel with NAT (CONFIG_NFT_NAT or CONFIG_IP_NF_NAT)."
	}
	do := remedy.New(goal+what, command)
	return newResult(check, Containers, Problem, "%s cannot use %s of the kernel (%s), and %s", IPTables, tables.Lacks, tables.LacksErr, nftObstacle).
		withRemedy(do, IPTables+" cannot use "+tables.Lacks+" of the kernel", formatRun(command)+", or install nft")
}

// findModules returns the arguments of modprobe that load the feature that an iptables lacks.
func findModules(tables Program) string {
	if tables.Lacks == nodeprograms.NAT && strings.Contains(tables.Version, "legacy") {
		return "iptable_nat"
	}
	return tables.missingFeature(IPTables).Modules
}

// missingFeature returns the feature of the kernel that a program lacks, whose name is given.
func (p Program) missingFeature(name string) nodeprograms.KernelFeature {
	for _, feature := range nodeprograms.KernelFeatures[name] {
		if feature.Name == p.Lacks {
			return feature
		}
	}
	return nodeprograms.KernelFeature{}
}

// nftObstacle returns why kube-proxy cannot use an nft that exists; "" if it can, or if the versions
// are unknown.
func (f Facts) nftObstacle(nft Program) string {
	v, text, known := parseVersion(nft.Version)
	kernel, _, knownKernel := parseVersion(f.Kernel)
	switch {
	case nft.Err != "":
		return fmt.Sprintf("%s --version fails: %s", nft.Path, nft.Err)
	case known && v.isBefore(minNFT):
		return fmt.Sprintf("nft %s is older than 1.0.1", text)
	case knownKernel && kernel.isBefore(minNFTKernel):
		return fmt.Sprintf("kernel %s is too old for nft: it needs 5.13 or newer", f.Kernel)
	case nft.Lacks != "":
		return fmt.Sprintf("%s cannot use %s of the kernel: %s", NFT, nft.Lacks, nft.LacksErr)
	default:
		return ""
	}
}
