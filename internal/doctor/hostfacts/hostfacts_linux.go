package hostfacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/embedded/nodeprograms"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
)

// addSystemFacts adds the facts that are in files of Linux.
func (h host) addSystemFacts(ctx context.Context, f *doctor.Facts) {
	f.Distribution = h.readDistribution()
	kernel, _ := h.readFile("/proc/sys/kernel/osrelease") // "" stands for an unknown kernel
	f.Kernel = strings.TrimSpace(kernel)
	f.UserNamespace = h.isUserNamespace()
	if f.UserID != 0 {
		f.UserNamespaceError = formatError(h.tryUserNamespace(ctx))
		f.AppArmorRestricted = h.isRestrictedByAppArmor()
		f.SubordinateUsers = newQuantity(h.countSubordinates("/etc/subuid", f))
		f.SubordinateGroups = newQuantity(h.countSubordinates("/etc/subgid", f))
	}
	f.Capabilities = h.readCapabilities()
	f.Programs = h.readPrograms(ctx)
	f.CNIFolders = h.readCNIFolders()
	f.Cgroups = h.readCgroups()
	f.Overlay = h.readOverlay(f.Kernel)
	if f.CanIsolate() {
		h.tryKernelFeatures(ctx, f.Programs)
		f.Veth, f.VethError = h.tryVeth(ctx, f)
	}
	f.TUNError = formatError(h.openTUN())
	f.InotifyInstances = newQuantity(h.readNumber("/proc/sys/fs/inotify/max_user_instances"))
	f.InotifyWatches = newQuantity(h.readNumber("/proc/sys/fs/inotify/max_user_watches"))
	f.Memory = newQuantity(h.readMemory())
}

func (h host) readFile(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(h.root, name))
	return string(raw), err
}

func (h host) readNumber(name string) (int64, error) {
	text, err := h.readFile(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s contains no number: %.40q", name, text)
	}
	return n, nil
}

// readDistribution reads os-release(5). The distribution is empty if there is none.
func (h host) readDistribution() doctor.Distribution {
	text, err := h.readFile("/etc/os-release")
	if err != nil {
		text, _ = h.readFile("/usr/lib/os-release") // the distribution is unknown without it
	}
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			values[key] = unquote(value)
		}
	}
	return doctor.Distribution{ID: values["ID"], Like: strings.Fields(values["ID_LIKE"]), Name: values["PRETTY_NAME"]}
}

// unquote removes the quotes of a value of a shell. Values of os-release contain no variables.
func unquote(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, "$", "\\`", "`", `\\`, `\`).Replace(value)
}

// readMemory reads MemAvailable: see proc_meminfo(5).
func (h host) readMemory() (int64, error) {
	text, err := h.readFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		var kB int64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kB); err == nil && n == 1 {
			return kB << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// readCapabilities reads CapEff: see proc_pid_status(5).
func (h host) readCapabilities() doctor.Capabilities {
	text, err := h.readFile("/proc/self/status")
	if err != nil {
		return doctor.Capabilities{Err: err.Error()}
	}
	for line := range strings.Lines(text) {
		value, found := strings.CutPrefix(line, "CapEff:")
		if !found {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return doctor.Capabilities{Err: fmt.Sprintf("CapEff of /proc/self/status is %.40q", strings.TrimSpace(value))}
		}
		return doctor.Capabilities{Effective: bits}
	}
	return doctor.Capabilities{Err: "/proc/self/status has no CapEff"}
}

// isUserNamespace reports whether user IDs are mapped. The first namespace maps all IDs to themselves:
// see user_namespaces(7).
func (h host) isUserNamespace() bool {
	text, err := h.readFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(text), " ") != "0 0 4294967295"
}

// tryUserNamespace starts a program in new namespaces, as root of one that maps this user only.
func (h host) tryUserNamespace(ctx context.Context) error {
	path := h.findProgram("true")
	if path == "" {
		return nil // nothing to try it with
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	enterUserNamespace(cmd.SysProcAttr)
	err := cmd.Run()
	var cause *os.PathError
	if errors.As(err, &cause) {
		return cause.Err
	}
	return err
}

// isRestrictedByAppArmor reports whether AppArmor restricts user namespaces of programs without a profile
// of their own, and this is one. Kernels without this setting lack the file.
func (h host) isRestrictedByAppArmor() bool {
	setting, err := h.readNumber("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	if err != nil || setting == 0 {
		return false
	}
	profile, err := h.readFile("/proc/self/attr/current")
	return err == nil && strings.TrimRight(profile, "\x00\n") == "unconfined"
}

// countSubordinates returns how many subordinate IDs a file delegates to the user.
func (h host) countSubordinates(file string, f *doctor.Facts) (int64, error) {
	text, err := h.readFile(file)
	if err != nil {
		return 0, err
	}
	return usernamespace.FindRange(text, f.UserName, f.UserID).Count, nil
}

func (h host) readCNIFolders() []doctor.CNIFolder {
	var out []doctor.CNIFolder
	for _, dir := range nodeprograms.PluginFolders {
		found := doctor.CNIFolder{Path: dir}
		for _, plugin := range doctor.CNIPlugins {
			if h.isProgram(filepath.Join(dir, plugin)) {
				found.Plugins = append(found.Plugins, plugin)
			}
		}
		if len(found.Plugins) > 0 {
			out = append(out, found)
		}
	}
	return out
}

// readOverlay looks for overlay among the file systems that the kernel has loaded, and among the
// modules that it can load.
func (h host) readOverlay(kernel string) doctor.Support {
	text, _ := h.readFile("/proc/filesystems") // the modules may still be known
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[len(words)-1] == "overlay" {
			return doctor.Supported
		}
	}
	return h.findModule(kernel, "overlay")
}

// findModule looks for a module among those that the kernel contains or can load. The answer is empty if the lists of
// modules do not exist.
func (h host) findModule(kernel, module string) doctor.Support {
	answer := doctor.Support("")
	for _, name := range []string{"modules.dep", "modules.builtin"} {
		modules, err := h.readFile(filepath.Join("/lib/modules", kernel, name))
		if err != nil {
			continue
		}
		if strings.Contains(modules, "/"+module+".ko") {
			return doctor.Supported
		}
		answer = doctor.Unsupported
	}
	return answer
}

// openTUN opens the device, which creates no network interface.
func (h host) openTUN() error {
	f, err := os.OpenFile(filepath.Join(h.root, "/dev/net/tun"), os.O_RDWR, 0)
	var cause *os.PathError
	if errors.As(err, &cause) {
		return cause.Err
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// fileSystems are the types of file systems: see statfs(2).
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4", // and its predecessors
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.NFS_SUPER_MAGIC:       "nfs",
	unix.CIFS_SUPER_MAGIC:      "cifs",
	unix.SMB2_SUPER_MAGIC:      "smb2",
	unix.V9FS_MAGIC:            "9p",
	unix.MSDOS_SUPER_MAGIC:     "vfat",
	unix.FUSE_SUPER_MAGIC:      "fuse",
	unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
}

func nameFileSystem(disk *unix.Statfs_t) string {
	return fileSystems[int64(disk.Type)&typeMask] //nolint:unconvert // the types differ on s390x
}

// typeMask selects the 32 bits of a type, which is a signed number on some architectures.
const typeMask = 1<<32 - 1
