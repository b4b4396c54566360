package programpages

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-04a31000 r-xp 00000000 fe:00 123                                /opt/my programs/hotspare
Size:              71876 kB
Rss:               40000 kB
Anonymous:             0 kB
04a31000-0b6f1000 r--p 04631000 fe:00 123                                /opt/my programs/hotspare
Anonymous:             8 kB
0b6f1000-0b9c1000 rw-p 0b2f1000 fe:00 123                                /opt/my programs/hotspare
Anonymous:             0 kB
c000000000-c00f400000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7ffd1d7f9000-7ffd1d7fb000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
7ffd1d800000-7ffd1d801000 r--p 00000000 fe:00 124                        /lib/other
`

func TestReadMappings(t *testing.T) {
	got, err := readMappings(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	const program = "/opt/my programs/hotspare"
	want := []mapping{
		{0x400000, 0x4a31000, program, true, false},
		{0x4a31000, 0xb6f1000, program, true, true},
		{0xb6f1000, 0xb9c1000, program, false, false},
		{begin: 0xc000000000, end: 0xc00f400000},
		{0x7ffd1d7f9000, 0x7ffd1d7fb000, "[vdso]", true, false},
		{0x7ffd1d800000, 0x7ffd1d801000, "/lib/other", true, true}, // it is not known what is private
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
	if _, err := readMappings(strings.NewReader("xyz-123 r-xp 0 0 0 /a\n")); err == nil || !strings.Contains(err.Error(), "xyz-123") {
		t.Errorf("a line that is none: %v", err)
	}
}

// TestReleaseKeepsWhatAProgramDoes releases the pages of this program, which goes on.
func TestReleaseKeepsWhatAProgramDoes(t *testing.T) {
	before := filePages(t)
	released, err := Release()
	if err != nil {
		t.Fatal(err)
	}
	if after := filePages(t); released == 0 || after >= before {
		t.Errorf("mappings of %d bytes were released: %d bytes were in memory before, and %d are now", released, before, after)
	}
	if got, err := readMappings(strings.NewReader(smaps)); err != nil || len(got) != 6 {
		t.Errorf("a function returns %v, %v after the release of its page", got, err)
	}
	if _, err := Release(); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// filePages returns how many bytes of files are in memory for this process.
func filePages(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "RssFile:" {
			kilobytes, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("the kernel does not say how many pages are in memory")
	return 0
}
