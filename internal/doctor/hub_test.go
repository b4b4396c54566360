package doctor

import "testing"

func TestFindingsAboutTheHub(t *testing.T) {
	checkFindings(t, map[string]findingCase{
		"macOS": {
			change:   func(f *Facts) { *f = onMac() },
			want:     []string{"Note Memory: the available memory cannot be read: this system does not report it", "Problem Linux: real pods need Linux"},
			obstacle: "real pods need Linux: run hotspare on Linux",
		},
		"an untested system": {
			change:   func(f *Facts) { f.OS = "freebsd" },
			want:     []string{"Note System: freebsd: hotspare is tested on Linux and macOS only", "Problem Linux: real pods need Linux"},
			obstacle: "real pods need Linux: run hotspare on Linux",
		},
		"an unknown distribution and kernel": {change: func(f *Facts) { f.Distribution, f.Kernel = Distribution{}, "" }},
		"the data folder cannot be written": {
			change:   func(f *Facts) { f.DataFolder.Err = "/root: permission denied" },
			want:     []string{"Problem Data folder: /root/.hotspare cannot be used: /root: permission denied"},
			obstacle: "/root/.hotspare cannot be used as the data folder (/root: permission denied): choose another data folder with --data-dir",
		},
		"a full disk": {
			change:   func(f *Facts) { f.DataFolder.Free.Value = 264*megabyte - 1 },
			want:     []string{"Problem Data folder: /root/.hotspare has 263 MB free; the hub and one local cluster need 264 MB"},
			obstacle: "the disk of /root/.hotspare is almost full: free some disk space there",
		},
		"a small disk": {
			change: func(f *Facts) { f.DataFolder.Free.Value = 264 * megabyte },
			want:   []string{"Note Data folder: /root/.hotspare has 264 MB free: enough for about 1 local cluster"},
		},
		"an unknown disk": {
			change: func(f *Facts) { f.DataFolder.Free = Quantity{Err: "input/output error"} },
			want:   []string{"Note Data folder: the free space of /root/.hotspare cannot be read: input/output error"},
		},
		"a data folder that does not exist yet": {change: func(f *Facts) { f.DataFolder.Exists = false }},
		"little memory": {
			change: func(f *Facts) { f.Memory.Value = gigabyte - 1 },
			want:   []string{"Note Memory: 1023 MB available; the hub takes about 400 MB, and each running local cluster about 250 MB"},
		},
		"few open files": {
			change:   func(f *Facts) { f.OpenFiles.Value = 639 },
			want:     []string{"Problem Open files: a process can open 639 files; the hub needs 640"},
			obstacle: "a process can open only 639 files: raise the hard limit on open files to 640 or more",
		},
		"enough open files": {change: func(f *Facts) { f.OpenFiles.Value = 640 }},
		"an unknown limit on open files": {
			change: func(f *Facts) { f.OpenFiles = Quantity{Err: "function not implemented"} },
			want:   []string{"Note Open files: the limit on open files cannot be read: function not implemented"},
		},
		"no loopback, another user": {
			change: both(asUser, func(f *Facts) { f.LoopbackError = "cannot assign requested address" }),
			want: []string{
				"Problem Loopback: programs cannot connect on 127.0.0.1: cannot assign requested address",
				"Note User: user you: pods have no limits of memory, CPU and processes",
			},
			obstacle: `programs cannot connect on 127.0.0.1: run "sudo ip link set lo up"`,
		},
	})
}
