package doctor

import (
	"fmt"
	"math"

	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Needs of the hub and its local clusters.
const (
	megabyte = 1 << 20
	gigabyte = 1 << 30
	// hubDisk is the free space without which the hub does not start, and clusterDisk the space
	// without which the local platform creates no cluster.
	hubDisk     = 64 * megabyte
	clusterDisk = 200 * megabyte
	// smallDisk and smallMemory are the amounts below which few clusters fit.
	smallDisk   = 2 * gigabyte
	smallMemory = gigabyte
	// minFiles is the limit on open files without which the hub does not start.
	minFiles = 640
)

// checkHub checks what the hub and its local clusters need.
func (f Facts) checkHub() []result {
	return []result{f.checkSystem(), f.checkDataFolder(), f.checkMemory(), f.checkOpenFiles(), f.checkLoopback()}
}

func (f Facts) checkSystem() result {
	const check = "System"
	switch f.OS {
	case linux:
		name := f.Distribution.Name
		if name == "" {
			name = "Linux"
		}
		if f.Kernel != "" {
			name += ", kernel " + f.Kernel
		}
		return newResult(check, Hub, OK, "%s", name)
	case "darwin":
		return newResult(check, Hub, OK, "macOS")
	default:
		return newResult(check, Hub, Note, "%s: hotspare is tested on Linux and macOS only", f.OS)
	}
}

func (f Facts) checkDataFolder() result {
	const check = "Data folder"
	d := f.DataFolder
	if d.Err != "" {
		cause := fmt.Sprintf("%s cannot be used as the data folder (%s)", d.Path, d.Err)
		return newResult(check, Hub, Problem, "%s cannot be used: %s", d.Path, d.Err).
			withRemedy(remedy.New("Choose a folder that you may write to, with --data-dir.", ""), cause, "choose another data folder with --data-dir")
	}
	free := d.Free.Value
	switch {
	case d.Free.Err != "":
		return newResult(check, Hub, Note, "the free space of %s cannot be read: %s", d.Path, d.Free.Err)
	case free < hubDisk+clusterDisk:
		return newResult(check, Hub, Problem, "%s has %s free; the hub and one local cluster need %s", d.Path, formatBytes(free), formatBytes(hubDisk+clusterDisk)).
			withRemedy(remedy.New("Free some disk space, or choose a folder on another disk with --data-dir.", ""),
				"the disk of "+d.Path+" is almost full", "free some disk space there")
	case free < smallDisk:
		clusters := humanize.FormatCount(int((free-hubDisk)/clusterDisk), "local cluster")
		return newResult(check, Hub, Note, "%s has %s free: enough for about %s", d.Path, formatBytes(free), clusters)
	case !d.Exists:
		return newResult(check, Hub, OK, "%s does not exist yet and can be created; %s free", d.Path, formatBytes(free))
	default:
		return newResult(check, Hub, OK, "%s, %s free", d.Path, formatBytes(free))
	}
}

// checkMemory reports no problem: a hub that runs has its memory already, and the local platform
// measures again before it starts a cluster.
func (f Facts) checkMemory() result {
	const check = "Memory"
	switch {
	case f.Memory.Err != "":
		return newResult(check, Hub, Note, "the available memory cannot be read: %s", f.Memory.Err)
	case f.Memory.Value < smallMemory:
		return newResult(check, Hub, Note, "%s available; the hub takes about 400 MB, and each running local cluster about 250 MB", formatBytes(f.Memory.Value))
	default:
		return newResult(check, Hub, OK, "%s available", formatBytes(f.Memory.Value))
	}
}

func (f Facts) checkOpenFiles() result {
	const check = "Open files"
	n := f.OpenFiles.Value
	switch {
	case f.OpenFiles.Err != "":
		return newResult(check, Hub, Note, "the limit on open files cannot be read: %s", f.OpenFiles.Err)
	case n < minFiles:
		do := remedy.New("Raise the hard limit on open files: ulimit -Hn in a root shell, LimitNOFILE of a systemd unit, --ulimit nofile of a container.", "")
		return newResult(check, Hub, Problem, "a process can open %d files; the hub needs %d", n, minFiles).
			withRemedy(do, fmt.Sprintf("a process can open only %d files", n), fmt.Sprintf("raise the hard limit on open files to %d or more", minFiles))
	case n == math.MaxInt64:
		return newResult(check, Hub, OK, "no limit")
	default:
		return newResult(check, Hub, OK, "a process can open %d files", n)
	}
}

func (f Facts) checkLoopback() result {
	const check = "Loopback"
	if f.LoopbackError == "" {
		return newResult(check, Hub, OK, "programs can connect on 127.0.0.1")
	}
	command := f.asRoot("ip link set lo up")
	return newResult(check, Hub, Problem, "programs cannot connect on 127.0.0.1: %s", f.LoopbackError).
		withRemedy(remedy.New("Turn on the loopback interface.", command), "programs cannot connect on 127.0.0.1", formatRun(command))
}

// formatBytes formats bytes, rounded down.
func formatBytes(n int64) string {
	n = max(n, 0)
	if n < gigabyte {
		return fmt.Sprintf("%d MB", n/megabyte)
	}
	return fmt.Sprintf("%d GB", n/gigabyte)
}

// asRoot returns a command that needs root, for the user of the machine.
func (f Facts) asRoot(command string) string {
	if f.UserID == 0 {
		return command
	}
	return "sudo " + command
}

// formatRun returns a clause that asks the reader to run a command.
func formatRun(command string) string { return fmt.Sprintf("run %q", command) }
