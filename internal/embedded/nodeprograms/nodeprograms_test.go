package nodeprograms

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
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

var errRefused = errors.New("refused")

// kernelWithout returns a function that runs programs on a kernel which lacks a word in their arguments, and the number of its calls.
func kernelWithout(word string) (try func([]string) error, calls *int) {
	calls = new(int)
	return func(arguments []string) error {
		*calls++
		if word != "" && strings.Contains(strings.Join(arguments, " "), word) {
			return errRefused
		}
		return nil
	}, calls
}

func TestTheFeatureThatTheKernelLacksIsNamed(t *testing.T) {
	for _, c := range []struct{ program, lacks, want string }{
		{IPTables, "nat", NAT},
		{IPTables, "comment", "the match comment"},
		{IPTables, "conntrack", "the match conntrack"},
		{IPTables, "addrtype", "the match addrtype"},
		{IPTables, "-m mark", "the match mark"},
		{IPTables, "-m tcp", "the match tcp"},
		{IPTables, "statistic", "the match statistic"},
		{IPTables, "recent", "the match recent"},
		{IPTables, "REJECT", "the target REJECT"},
		{IPTables, "MARK", "the target MARK"},
		{IPTables, "DNAT", "the target DNAT"},
		{IPTables, "MASQUERADE", "the target MASQUERADE"},
		{NFT, "nat", NAT},
		{NFT, "dnat to", "the expressions for NAT"},
		{NFT, "masquerade", "the expressions for NAT"},
		{NFT, "fib", "the expressions for Services"},
		{NFT, "numgen", "the expressions for Services"},
		{NFT, "reject", "the expressions for Services"},
	} {
		try, _ := kernelWithout(c.lacks)
		if missing, err := FindMissing(c.program, false, try); missing.Name != c.want || !errors.Is(err, errRefused) {
			t.Errorf("%s without %s: %q, %v", c.program, c.lacks, missing.Name, err)
		}
		missing, err := FindMissing(c.program, true, try)
		if want := c.lacks != "recent"; (err != nil) != want || (missing.Name != "") != want {
			t.Errorf("%s without %s: a node lacks %q, %v", c.program, c.lacks, missing.Name, err)
		}
	}
}

func TestAKernelWithAllFeaturesIsAskedRarely(t *testing.T) {
	for program, most := range map[string]int{IPTables: 5, NFT: 1} {
		try, calls := kernelWithout("")
		if missing, err := FindMissing(program, false, try); missing.Name != "" || err != nil || *calls > most {
			t.Errorf("%s: lacks %q, %v, after %d trials", program, missing.Name, err, *calls)
		}
	}
}
