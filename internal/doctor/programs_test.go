package doctor

import "testing"

func TestFindingsAboutPrograms(t *testing.T) {
	checkFindings(t, map[string]findingCase{
		"no containerd": {
			change:   without(Containerd),
			want:     []string{"Problem containerd: missing"},
			obstacle: `containerd is missing: run "apt-get install containerd"`,
		},
		"neither containerd nor its shim": {
			change:   without(Containerd, ContainerdShim),
			want:     []string{"Problem containerd: missing"},
			obstacle: `containerd is missing: run "apt-get install containerd"`,
		},
		"no shim of containerd": {
			change:   without(ContainerdShim),
			want:     []string{"Problem containerd: /usr/bin/containerd exists, but its program containerd-shim-runc-v2 is missing"},
			obstacle: `containerd-shim-runc-v2 is missing: run "apt-get install containerd"`,
		},
		"no ctr": {
			change:   without(CTR),
			want:     []string{"Problem containerd: /usr/bin/containerd exists, but its program ctr is missing"},
			obstacle: `ctr is missing: run "apt-get install containerd"`,
		},
		"no ctr on Alpine, where it has a package": {
			change:   both(without(CTR), func(f *Facts) { f.Distribution = Distribution{ID: "alpine"} }),
			want:     []string{"Problem containerd: /usr/bin/containerd exists, but its program ctr is missing"},
			obstacle: `ctr is missing: run "apk add containerd containerd-ctr"`,
		},
		"no runc": {
			change:   without(Runc),
			want:     []string{"Problem runc: missing"},
			obstacle: `runc is missing: run "apt-get install runc"`,
		},
		"no CNI plugins": {
			change:   func(f *Facts) { f.CNIFolders = nil },
			want:     []string{"Problem CNI plugins: missing"},
			obstacle: `the CNI plugins are missing: run "apt-get install containernetworking-plugins"`,
		},
		"one CNI plugin is missing": {
			change:   onlyPlugins("host-local", "loopback", "portmap"),
			want:     []string{"Problem CNI plugins: /opt/cni/bin lacks the plugin ptp"},
			obstacle: `the CNI plugin ptp is missing: run "apt-get install containernetworking-plugins"`,
		},
		"two CNI plugins are missing": {
			change:   onlyPlugins("host-local", "loopback"),
			want:     []string{"Problem CNI plugins: /opt/cni/bin lacks the plugins portmap and ptp"},
			obstacle: `the CNI plugins portmap and ptp are missing: run "apt-get install containernetworking-plugins"`,
		},
		"no folder has all CNI plugins": {
			change: func(f *Facts) {
				f.CNIFolders = []CNIFolder{{"/opt/cni/bin", []string{"ptp"}}, {"/usr/lib/cni", []string{"host-local", "loopback", "portmap"}}, {"/usr/libexec/cni", nil}}
			},
			want:     []string{"Problem CNI plugins: /usr/lib/cni lacks the plugin ptp"},
			obstacle: `the CNI plugin ptp is missing: run "apt-get install containernetworking-plugins"`,
		},
		"no packet filter": {
			change:   without(IPTables, NFT),
			want:     []string{"Problem Packet filter: neither iptables nor nft exists"},
			obstacle: `iptables is missing: run "apt-get install iptables"`,
		},
		"only nft":      {change: without(IPTables)},
		"only iptables": {change: without(NFT)},
		"only an nft that is too old": {
			change:   both(without(IPTables), prints(NFT, "nftables v1.0.0 (Fearless Fosdick)")),
			want:     []string{"Problem Packet filter: iptables is missing, and nft 1.0.0 is older than 1.0.1"},
			obstacle: `iptables is missing: run "apt-get install iptables"`,
		},
		"only nft, on an old kernel": {
			change:   both(without(IPTables), func(f *Facts) { f.Kernel = "5.12.19-100.el8" }),
			want:     []string{"Problem Packet filter: iptables is missing, and kernel 5.12.19-100.el8 is too old for nft: it needs 5.13 or newer"},
			obstacle: `iptables is missing: run "apt-get install iptables"`,
		},
		"only nft, on the first kernel for it": {change: both(without(IPTables), func(f *Facts) { f.Kernel = "5.13.0" })},
		"only nft, on an unknown kernel":       {change: both(without(IPTables), func(f *Facts) { f.Kernel = "" })},
		"only nft, of an unknown version":      {change: both(without(IPTables), prints(NFT, "?"))},
		"iptables on an old kernel":            {change: func(f *Facts) { f.Kernel = "4.18.0-477.el8" }},
		"iptables does not run":                {change: fails(IPTables, "exec format error")},
		"iptables does not run, and no nft": {
			change:   both(without(NFT), fails(IPTables, "exec format error")),
			want:     []string{"Problem Packet filter: /usr/sbin/iptables --version fails: exec format error"},
			obstacle: "iptables does not run: install iptables again",
		},
		"nft does not run, and no iptables": {
			change:   both(without(IPTables), fails(NFT, "exec format error")),
			want:     []string{"Problem Packet filter: iptables is missing, and /usr/sbin/nft --version fails: exec format error"},
			obstacle: `iptables is missing: run "apt-get install iptables"`,
		},
		"iptables without the table nat": {change: lacksNAT(IPTables, "exit status 3")},
		"iptables without the table nat, and no nft": {
			change: both(without(NFT), lacksNAT(IPTables, "exit status 4: iptables v1.8.9 (nf_tables): Could not fetch rule set generation id")),
			want: []string{"Problem Packet filter: iptables cannot use the table nat of the kernel (exit status 4: iptables v1.8.9 (nf_tables): " +
				"Could not fetch rule set generation id), and nft is missing"},
			obstacle: `iptables cannot use the table nat of the kernel: run "modprobe -a nft_chain_nat nft_compat", or install nft`,
		},
		"an older iptables without the table nat, and no nft": {
			change: both(without(NFT), prints(IPTables, "iptables v1.8.9 (legacy)"), lacksNAT(IPTables, "exit status 3"), asUser),
			want: []string{
				"Note User: user you: pods have no limits of memory, CPU and processes",
				"Problem Packet filter: iptables cannot use the table nat of the kernel (exit status 3), and nft is missing",
			},
			obstacle: `iptables cannot use the table nat of the kernel: run "sudo modprobe iptable_nat", or install nft`,
		},
		"iptables without a match, and no nft": {
			change:   both(without(NFT), lacks(IPTables, "the match statistic", "exit status 1")),
			want:     []string{"Problem Packet filter: iptables cannot use the match statistic of the kernel (exit status 1), and nft is missing"},
			obstacle: `iptables cannot use the match statistic of the kernel: run "modprobe xt_statistic", or install nft`,
		},
		"iptables without a match, and nft": {change: lacks(IPTables, "the match statistic", "exit status 1")},
		"iptables without the match for session affinity": {
			change: both(without(NFT), lacks(IPTables, "the match recent", "exit status 1")),
			want: []string{"Note Packet filter: iptables 1.8.9 (/usr/sbin/iptables) cannot use the match recent of the kernel: " +
				`Services with session affinity do not work, unless you run "modprobe xt_recent"`},
		},
		"neither iptables nor nft with the table nat": {
			change: both(lacksNAT(NFT, "exit status 1"), lacksNAT(IPTables, "exit status 4")),
			want: []string{"Problem Packet filter: iptables cannot use the table nat of the kernel (exit status 4), " +
				"and nft cannot use the table nat of the kernel: exit status 1"},
			obstacle: `iptables cannot use the table nat of the kernel: run "modprobe -a nft_chain_nat nft_compat", or install nft`,
		},
		"iptables does not run, and nft is without the table nat": {
			change:   both(lacksNAT(NFT, "exit status 1"), fails(IPTables, "exec format error")),
			want:     []string{"Problem Packet filter: /usr/sbin/iptables --version fails: exec format error"},
			obstacle: "iptables does not run: install iptables again",
		},
		"only nft, without the table nat": {
			change:   both(without(IPTables), lacksNAT(NFT, "exit status 1")),
			want:     []string{"Problem Packet filter: iptables is missing, and nft cannot use the table nat of the kernel: exit status 1"},
			obstacle: `iptables is missing: run "apt-get install iptables"`,
		},
		"nft without the table nat": {change: lacksNAT(NFT, "exit status 1")},
		"all is missing": {
			change: allMissing,
			want: []string{
				"Problem containerd: missing", "Problem runc: missing", "Problem CNI plugins: missing", "Problem Packet filter: neither iptables nor nft exists",
			},
			obstacle: `containerd, runc, the CNI plugins and iptables are missing: run "apt-get install containerd runc containernetworking-plugins iptables"`,
		},
		"three are missing, and the user is not root": {
			change: both(without(Containerd, Runc), onlyPlugins("host-local", "loopback", "portmap"), asUser),
			want: []string{
				"Note User: user you: pods have no limits of memory, CPU and processes",
				"Problem containerd: missing", "Problem runc: missing", "Problem CNI plugins: /opt/cni/bin lacks the plugin ptp",
			},
			obstacle: `containerd, runc and the CNI plugin ptp are missing: run "sudo apt-get install containerd runc containernetworking-plugins"`,
		},
		"containerd is old": {
			change:   prints(Containerd, "containerd github.com/containerd/containerd 1.4.13~ds1 1.4.13~ds1-1~deb11u4"),
			want:     []string{"Problem containerd: 1.4.13~ds1 is too old (/usr/bin/containerd): real pods need 1.6 or newer"},
			obstacle: "containerd 1.4.13~ds1 is older than 1.6: upgrade containerd",
		},
		"containerd is one version too old": {
			change:   prints(Containerd, "containerd github.com/containerd/containerd v1.5.18 2405c2b"),
			want:     []string{"Problem containerd: 1.5.18 is too old (/usr/bin/containerd): real pods need 1.6 or newer"},
			obstacle: "containerd 1.5.18 is older than 1.6: upgrade containerd",
		},
		"containerd is of the first version that is enough": {change: prints(Containerd, "containerd github.com/containerd/containerd v1.6.0 39259a8")},
		"containerd is of version 2":                        {change: prints(Containerd, "containerd github.com/containerd/containerd/v2 v2.0.4 1a43cb6")},
		"containerd prints garbage": {
			change: prints(Containerd, "\x1b[31mconfusion\x00 reigns"),
			want:   []string{`Note containerd: /usr/bin/containerd prints no version that hotspare can read ("\x1b[31mconfusion\x00 reigns"); real pods need 1.6 or newer`},
		},
		"containerd prints nothing": {
			change: prints(Containerd, ""),
			want:   []string{`Note containerd: /usr/bin/containerd prints no version that hotspare can read (""); real pods need 1.6 or newer`},
		},
		"containerd hangs": {
			change:   fails(Containerd, "no answer after 5s"),
			want:     []string{"Problem containerd: /usr/bin/containerd --version fails: no answer after 5s"},
			obstacle: "containerd does not run: install containerd again",
		},
		"runc does not run": {
			change:   fails(Runc, "permission denied\x1b"),
			want:     []string{"Problem runc: /usr/sbin/runc --version fails: permission denied "},
			obstacle: "runc does not run: install runc again",
		},
		"runc prints garbage": {change: prints(Runc, "?")},
	})
}

func TestCompleteCNIFolder(t *testing.T) {
	for want, folders := range map[string][]CNIFolder{
		"":                 {{"/usr/lib/cni", []string{"loopback", "ptp"}}, {"/opt/cni/bin", []string{"host-local", "portmap"}}},
		"/opt/cni/bin":     {{"/usr/lib/cni", []string{"ptp"}}, {"/opt/cni/bin", CNIPlugins}, {"/usr/libexec/cni", CNIPlugins}},
		"/usr/libexec/cni": {{"/usr/libexec/cni", []string{"ptp", "portmap", "loopback", "host-local"}}},
	} {
		if got := (Facts{CNIFolders: folders}).CompleteCNIFolder(); got != want {
			t.Errorf("%v: %q, want %q", folders, got, want)
		}
	}
}
