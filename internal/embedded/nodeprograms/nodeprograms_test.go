package nodeprograms

import (
	"path/filepath"
	"slices"
	"testing"
)

// only returns a function that reports whether a path is one of these.
func only(paths ...string) func(string) bool {
	return func(path string) bool { return slices.Contains(paths, path) }
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		exist   []string
		want    string
	}{
		"the first folder wins":             {Runc, []string{"/usr/bin/runc", "/usr/local/sbin/runc"}, "/usr/local/sbin/runc"},
		"no other folder is searched":       {Runc, []string{"/opt/bin/runc", "/run/current-system/sw/bin/runc"}, ""},
		"another program":                   {Runc, []string{"/usr/bin/containerd"}, ""},
		"ctr of openSUSE":                   {CTR, []string{"/usr/sbin/containerd-ctr"}, "/usr/sbin/containerd-ctr"},
		"the usual name wins":               {CTR, []string{"/usr/local/sbin/containerd-ctr", "/bin/ctr"}, "/bin/ctr"},
		"other programs have one name only": {Runc, []string{"/usr/bin/containerd-runc"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Find(c.program, only(c.exist...)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPluginsAreFoundInOneFolderOnly(t *testing.T) {
	var exist []string
	for i, plugin := range Plugins {
		if got := FindPlugins(only(exist...)); got != "" {
			t.Errorf("%d of %d plugins are enough in %s", i, len(Plugins), got)
		}
		exist = append(exist, filepath.Join("/usr/lib/cni", plugin))
	}
	if got := FindPlugins(only(exist...)); got != "/usr/lib/cni" {
		t.Errorf("got %q", got)
	}
	exist[0] = filepath.Join("/opt/cni/bin", Plugins[0])
	if got := FindPlugins(only(exist...)); got != "" {
		t.Errorf("the plugins of two folders are found in %q", got)
	}
}
