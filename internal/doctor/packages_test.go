package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/explain/remedy"
)

func TestRemediesNameTheCommandOfTheDistribution(t *testing.T) {
	const text = "To run real pods, install the missing packages."
	for name, c := range map[string]struct {
		of   Distribution
		user int
		want remedy.Remedy
	}{
		"Debian":            {Distribution{ID: "debian"}, 0, remedy.Remedy{Text: text, Command: "apt-get install containerd runc containernetworking-plugins iptables"}},
		"Debian, no root":   {Distribution{ID: "debian"}, 1, remedy.Remedy{Text: text, Command: "sudo apt-get install containerd runc containernetworking-plugins iptables uidmap"}},
		"Ubuntu":            {Distribution{ID: "ubuntu", Like: []string{"debian"}}, 0, remedy.Remedy{Text: text, Command: "apt-get install containerd runc containernetworking-plugins iptables"}},
		"Linux Mint":        {Distribution{ID: "linuxmint", Like: []string{"ubuntu", "debian"}}, 0, remedy.Remedy{Text: text, Command: "apt-get install containerd runc containernetworking-plugins iptables"}},
		"Fedora":            {Distribution{ID: "fedora"}, 0, remedy.Remedy{Text: text, Command: "dnf install containerd runc containernetworking-plugins iptables-nft"}},
		"RHEL":              {Distribution{ID: "rhel", Like: []string{"fedora"}}, 0, remedy.Remedy{Text: text + " containerd.io is in Docker's package repository: https://docs.docker.com/engine/install/rhel/", Command: "dnf install containerd.io containernetworking-plugins iptables-nft"}},
		"Rocky Linux":       {Distribution{ID: "rocky", Like: []string{"rhel", "centos", "fedora"}}, 0, remedy.Remedy{Text: text + " containerd.io is in Docker's package repository: https://docs.docker.com/engine/install/rhel/", Command: "dnf install containerd.io containernetworking-plugins iptables-nft"}},
		"Arch":              {Distribution{ID: "arch"}, 0, remedy.Remedy{Text: text, Command: "pacman -S containerd runc cni-plugins iptables"}},
		"Alpine":            {Distribution{ID: "alpine"}, 0, remedy.Remedy{Text: text, Command: "apk add containerd containerd-ctr runc cni-plugins iptables"}},
		"openSUSE":          {Distribution{ID: "opensuse-tumbleweed", Like: []string{"opensuse", "suse"}}, 0, remedy.Remedy{Text: text, Command: "zypper install containerd containerd-ctr runc cni-plugins iptables"}},
		"an edition alone":  {Distribution{ID: "opensuse-leap"}, 0, remedy.Remedy{Text: text, Command: "zypper install containerd containerd-ctr runc cni-plugins iptables"}},
		"SLES":              {Distribution{ID: "sles", Like: []string{"suse"}}, 0, remedy.Remedy{Text: text, Command: "zypper install containerd containerd-ctr runc cni-plugins iptables"}},
		"an unknown one":    {Distribution{ID: "nixos"}, 0, remedy.Remedy{Text: "To run real pods, install containerd with containerd-shim-runc-v2 and ctr, runc, the CNI plugins (https://github.com/containernetworking/plugins), iptables."}},
		"no os-release":     {Distribution{}, 0, remedy.Remedy{Text: "To run real pods, install containerd with containerd-shim-runc-v2 and ctr, runc, the CNI plugins (https://github.com/containernetworking/plugins), iptables."}},
		"a hyphen in front": {Distribution{ID: "-debian"}, 0, remedy.Remedy{Text: "To run real pods, install containerd with containerd-shim-runc-v2 and ctr, runc, the CNI plugins (https://github.com/containernetworking/plugins), iptables."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := capable()
			if c.user != 0 {
				asUser(&f)
			}
			f.Distribution = c.of
			allMissing(&f)
			seen := 0
			for _, one := range Findings(f) {
				if one.Level != Problem || one.Check == "User" {
					continue
				}
				seen++
				if diff := cmp.Diff(&c.want, one.Remedy); diff != "" {
					t.Errorf("%s: the remedy differs (-want +got):\n%s", one.Check, diff)
				}
			}
			want := 4
			if c.user != 0 {
				want = 5
			}
			if seen != want {
				t.Errorf("%d findings are about packages, want %d", seen, want)
			}
			todo := "install what is missing"
			if c.want.Command != "" {
				todo = `run "` + c.want.Command + `"`
			}
			if got := ContainersObstacle(f); !strings.Contains(got, ": "+todo) {
				t.Errorf("the obstacle is %q, and does not say %q", got, todo)
			}
		})
	}
}

// Docker's package of containerd contains runc. Without it, its repository is not needed.
func TestTheHintAboutARepositoryComesWithItsPackage(t *testing.T) {
	f := capable()
	f.Distribution = Distribution{ID: "rhel"}
	f.CNIFolders = nil
	for _, one := range Findings(f) {
		if one.Check == "CNI plugins" && (one.Remedy == nil || strings.Contains(one.Remedy.Text, "Docker") || one.Remedy.Command != "dnf install containernetworking-plugins") {
			t.Errorf("the remedy is %v", one.Remedy)
		}
	}
}
