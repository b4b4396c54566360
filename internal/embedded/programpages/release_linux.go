package programpages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Release unmaps the pages of this process's program that are as in its file. The kernel keeps them in its cache as long as
// it has memory, and maps those that are used again from there, or reads them from the disk again. It returns the number of bytes that
// the mappings span.
func Release() (uint64, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("finding the program of this process: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	defer func() { _ = f.Close() }()
	mappings, err := readMappings(f)
	if err != nil {
		return 0, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	var released uint64
	for _, m := range mappings {
		if m.file != program || !m.isReadOnly || m.hasPrivatePages {
			continue
		}
		if err := dropPages(m); err != nil {
			return released, fmt.Errorf("unmapping pages of %s: %w", program, err)
		}
		released += m.end - m.begin
	}
	return released, nil
}

// dropPages unmaps the pages of a mapping.
func dropPages(m mapping) error {
	// The mapping is no memory of Go's, so that no slice can be made of it.
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(m.begin), uintptr(m.end-m.begin), unix.MADV_DONTNEED); errno != 0 {
		return errno
	}
	return nil
}

// A mapping is an entry of smaps, as proc(5) describes it.
type mapping struct {
	begin, end uint64
	file       string
	isReadOnly bool
	// hasPrivatePages is set if pages were changed, by a relocation or a debugger: they are not in the file. It is set, too, if
	// that is unknown.
	hasPrivatePages bool
}

func readMappings(smaps io.Reader) ([]mapping, error) {
	var out []mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if begin, end, found := strings.Cut(fields[0], "-"); found {
			m, err := newMapping(begin, end, lines.Text())
			if err != nil {
				return nil, err
			}
			out = append(out, m)
			continue
		}
		if len(out) > 0 && fields[0] == "Anonymous:" && len(fields) == 3 {
			out[len(out)-1].hasPrivatePages = fields[1] != "0"
		}
	}
	return out, lines.Err()
}

// newMapping reads the first line of an entry: the range, the permissions, the offset, the device, the inode, and the file, if
// it maps one.
func newMapping(begin, end, line string) (mapping, error) {
	m := mapping{hasPrivatePages: true}
	var err error
	if m.begin, err = strconv.ParseUint(begin, 16, 64); err != nil {
		return m, fmt.Errorf("%q: %w", line, err)
	}
	if m.end, err = strconv.ParseUint(end, 16, 64); err != nil {
		return m, fmt.Errorf("%q: %w", line, err)
	}
	if len(strings.Fields(line)) < 2 {
		return m, fmt.Errorf("%q has no permissions", line)
	}
	m.isReadOnly = !strings.Contains(strings.Fields(line)[1], "w")
	const fieldsBeforeFile = 5
	for range fieldsBeforeFile {
		_, line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	m.file = strings.TrimSpace(line)
	return m, nil
}
