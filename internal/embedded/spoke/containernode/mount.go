//go:build linux

package containernode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/component-helpers/node/util/sysctl"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/nodeprograms"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/cgroup"
)

// searchPath is where the node's programs are looked up.
var searchPath = strings.Join(nodeprograms.Folders, ":")

// programFolders are the folders of this computer that the node has, read-only. Those that do not
// exist are left out, and links stay links.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix"}

// systemFiles are files and folders in /etc that programs need, read-only; none of them contains a
// secret.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ethertypes", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs",
	"/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/xtables.lock",
}

// folder modes of the root folder.
const (
	folderMode = 0o755
	sharedMode = 0o1777
)

// enterRoot builds the node's root folder and makes it the root of this process. The paths of the
// machine's folder and of the control plane's network folder are the same in it.
func enterRoot(dir string, c machine.Config, groups []machine.CgroupHierarchy) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts from those of this computer: %w", err)
	}
	r := rootBuilder{root: filepath.Join(dir, "root")}
	network := machine.NetworkPath(controlPlaneDir(dir, c)) // the control plane may be about to create it
	for _, folder := range []string{r.root, machine.NodePath(dir), network} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	r.mount("tmpfs", "/", "tmpfs", 0, "mode=755")
	r.addPrograms()
	r.addKernelFolders(groups)
	r.bind(machine.NodePath(dir), "/var", 0)
	r.bind(dir, dir, 0)
	r.bind(network, network, 0)
	r.do("link /var/run", func() error { return ignoreExist(os.Symlink("/run", r.path("/var/run"))) })
	r.do("change the root folder to "+r.root, r.change)
	return r.err
}

// rootBuilder builds a root folder. The first error stops it.
type rootBuilder struct {
	root string
	err  error
}

func (r *rootBuilder) path(path string) string { return filepath.Join(r.root, path) }

// do calls f unless there was an error.
func (r *rootBuilder) do(what string, f func() error) {
	if r.err != nil {
		return
	}
	if err := f(); err != nil {
		r.err = fmt.Errorf("building the root folder: %s: %w", what, err)
	}
}

func (r *rootBuilder) mkdir(path string, mode fs.FileMode) {
	r.do("create "+path, func() error {
		if err := os.MkdirAll(r.path(path), folderMode); err != nil {
			return err
		}
		return os.Chmod(r.path(path), mode|modeOf(mode))
	})
}

// modeOf converts the sticky bit, which os has elsewhere.
func modeOf(mode fs.FileMode) fs.FileMode {
	if mode&0o1000 != 0 {
		return fs.ModeSticky
	}
	return 0
}

func (r *rootBuilder) mount(source, path, kind string, flags uintptr, options string) {
	r.do("mount "+kind+" at "+path, func() error {
		if err := os.MkdirAll(r.path(path), folderMode); err != nil {
			return err
		}
		return unix.Mount(source, r.path(path), kind, flags, options)
	})
}

// bind makes the file or folder source visible at path. flags may be unix.MS_RDONLY, and unix.MS_REC
// for mounts below source.
func (r *rootBuilder) bind(source, path string, flags uintptr) {
	r.do("bind "+source, func() error {
		target := r.path(path)
		if err := createMountPoint(source, target); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND|flags&unix.MS_REC, ""); err != nil {
			return err
		}
		if flags&unix.MS_RDONLY == 0 {
			return nil
		}
		return unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|currentFlags(target), "")
	})
}

// currentFlags returns the flags of a mount that a remount must keep.
func currentFlags(path string) uintptr {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0
	}
	return keptFlags(int64(s.Flags)) //nolint:unconvert // the types differ on some architectures
}

// keptFlags returns the flags of a mount that a remount must name to keep them; statfs are the flags of statfs(2). A
// remount that names none of the flags about access times keeps all of them, and in a user namespace it must: they are
// locked. See mount(2).
func keptFlags(statfs int64) uintptr {
	return uintptr(statfs) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
}

func createMountPoint(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(target, folderMode)
	}
	if err := os.MkdirAll(filepath.Dir(target), folderMode); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// addPrograms adds this computer's programs and what they read.
func (r *rootBuilder) addPrograms() {
	for _, path := range programFolders {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			continue
		case info.Mode()&fs.ModeSymlink != 0:
			r.do("link "+path, func() error {
				to, err := os.Readlink(path)
				if err != nil {
					return err
				}
				return os.Symlink(to, r.path(path))
			})
		case info.IsDir():
			r.bind(path, path, unix.MS_RDONLY|unix.MS_REC)
		}
	}
	for _, path := range systemFiles {
		if _, err := os.Stat(path); err == nil {
			r.bind(path, path, unix.MS_RDONLY|unix.MS_REC)
		}
	}
}

// addKernelFolders adds folders that the kernel fills, and folders that are empty at each start.
func (r *rootBuilder) addKernelFolders(groups []machine.CgroupHierarchy) {
	r.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	r.mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	r.addCgroups(groups)
	r.bind("/dev", "/dev", unix.MS_REC)
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() { // pods with hostIPC see that of the node
		r.mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777")
	}
	r.mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	r.mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	r.mkdir("/root", 0o700)
	r.mkdir("/mnt", folderMode)
	if !isUserNamespace() {
		r.coverKernelSettings()
	}
}

// kernelSettings are settings of the whole computer that the kubelet changes to these values when it starts, if it is root and
// they are different. They are files in /proc/sys.
var kernelSettings = map[string]int{
	sysctl.VMOvercommitMemory: sysctl.VMOvercommitMemoryAlways,
	sysctl.VMPanicOnOOM:       sysctl.VMPanicOnOOMInvokeOOMKiller,
	sysctl.KernelPanic:        sysctl.KernelPanicRebootTimeout,
	sysctl.KernelPanicOnOops:  sysctl.KernelPanicOnOopsAlways,
	sysctl.RootMaxKeys:        sysctl.RootMaxKeysSetting,
	sysctl.RootMaxBytes:       sysctl.RootMaxBytesSetting,
}

// coverKernelSettings covers kernelSettings by files with the values that the kubelet expects: those of the computer stay as they
// are. The second proc file system is not covered: the kernel lets a user namespace of a pod mount one only if the node has such a
// one.
func (r *rootBuilder) coverKernelSettings() {
	const folder = "/run/kernel-settings"
	r.mkdir(folder, 0o700)
	for name, value := range kernelSettings {
		setting := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(setting); err != nil {
			continue
		}
		cover := r.path(filepath.Join(folder, strings.ReplaceAll(name, "/", ".")))
		r.do("write "+cover, func() error { return os.WriteFile(cover, []byte(strconv.Itoa(value)+"\n"), 0o400) })
		r.bind(cover, setting, unix.MS_RDONLY)
	}
	r.mount("proc", "/run/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// cgroupRoot is where hierarchies of control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// addCgroups mounts the hierarchies of this computer as the namespace of control groups shows them, or
// as they are if groups is nil.
func (r *rootBuilder) addCgroups(groups []machine.CgroupHierarchy) {
	if groups == nil {
		r.bind(cgroupRoot, cgroupRoot, unix.MS_REC) // to read: the rights of a user do not allow more
		return
	}
	if !slices.ContainsFunc(groups, func(h machine.CgroupHierarchy) bool { return h.Path == cgroupRoot }) {
		r.mount("tmpfs", cgroupRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755")
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME
	for _, h := range groups {
		if !strings.HasPrefix(h.Path, cgroupRoot) {
			continue
		}
		if !h.Version2 {
			r.mount("cgroup", h.Path, "cgroup", flags, h.Controllers)
			continue
		}
		r.mount("cgroup2", h.Path, "cgroup2", flags, "")
		r.do("use the control groups of version 2", func() error { return cgroup.LeaveRoot(r.path(h.Path)) })
	}
	r.copyLinks(cgroupRoot)
}

// copyLinks copies the links in a folder, such as cpu to cpu,cpuacct.
func (r *rootBuilder) copyLinks(dir string) {
	r.do("copy the links in "+dir, func() error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			to, err := os.Readlink(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if err := ignoreExist(os.Symlink(to, r.path(filepath.Join(dir, e.Name())))); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes the root folder the root of this process and hides the former one.
func (r *rootBuilder) change() error {
	if err := os.Chdir(r.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the former root is now mounted over the new one
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Mounts of volumes propagate from the kubelet to containers that ask for it.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// withoutSecrets returns the variables of an environment that the node needs: a program in a
// container could read the others in /proc.
func withoutSecrets(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name != "HOTSPARE_PARENT_PIPE" && name != "GOGC" && name != "GODEBUG" && name != "GOTRACEBACK"
	})
}
