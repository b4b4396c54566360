package usernamespace

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// MinCount is the least number of subordinate IDs of a user: images use the IDs up to 65535, of which
// root is the user's own.
const MinCount = 65535

// A Range is a range of user or group IDs.
type Range struct {
	First, Count int64
}

// FindRange returns the first range with MinCount IDs that a file such as /etc/subuid delegates to a
// user; see subuid(5). Without any, it returns the largest range. An empty Range means that there is
// none.
func FindRange(file, userName string, userID int) Range {
	var largest Range
	lines := bufio.NewScanner(strings.NewReader(file))
	for lines.Scan() {
		owner, r, ok := parseRange(lines.Text())
		if !ok || owner != userName && owner != strconv.Itoa(userID) {
			continue
		}
		if r.Count >= MinCount {
			return r
		}
		if r.Count > largest.Count {
			largest = r
		}
	}
	return largest
}

// parseRange parses a line OWNER:FIRST:COUNT.
func parseRange(line string) (owner string, r Range, ok bool) {
	fields := strings.Split(strings.TrimSpace(line), ":")
	if len(fields) != 3 || fields[0] == "" {
		return "", Range{}, false
	}
	first, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || first <= 0 {
		return "", Range{}, false
	}
	count, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || count <= 0 {
		return "", Range{}, false
	}
	return fields[0], Range{First: first, Count: count}, true
}

// mappingArguments returns the arguments of newuidmap or newgidmap, which map root of the namespace to
// the user's own ID, and the other IDs to the range.
func mappingArguments(pid, own int, r Range) []string {
	return []string{
		strconv.Itoa(pid), "0", strconv.Itoa(own), "1",
		"1", strconv.FormatInt(r.First, 10), strconv.FormatInt(min(r.Count, MinCount), 10),
	}
}

// checkRange returns an error that says what to do if the range is too small.
func checkRange(r Range, what, file, flag, userName string) error {
	if r.Count >= MinCount {
		return nil
	}
	return fmt.Errorf("user %s has %d subordinate %s in %s, and needs %d: run as root: usermod %s 100000-165535 %s",
		userName, r.Count, what, file, MinCount, flag, userName)
}
