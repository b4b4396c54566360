package standin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Cloud is the folder that a stand-in makes its clusters in.
type Cloud string

func (c Cloud) path(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// Fault makes the next n runs that come by it fail there: invalid, expired,
// no-metadata, fail-STAGE, fail-destroy; deaf makes an installer ignore SIGTERM.
func (c Cloud) Fault(name string, n int) error {
	return c.put(strings.Repeat("x", n), "faults", name)
}

// Hang makes runs stop at a place until Free: prepare, a stage, late, destroy.
func (c Cloud) Hang(place string) error { return c.put("", "hang", place) }

// Free ends a Hang.
func (c Cloud) Free(place string) error { return os.Remove(c.path("hang", place)) }

// Hung reports whether a run stands at a place.
func (c Cloud) Hung(place string) bool {
	_, err := os.Stat(c.path("hung", place))
	return err == nil
}

// Clusters are the infraIDs of what is there, sorted.
func (c Cloud) Clusters() []string { return c.names("clusters") }

// Has are the things of a cluster, sorted.
func (c Cloud) Has(infraID string) []string { return c.names("clusters", infraID) }

// Ignition is what the bootstrap machine of a cluster was given: its manifests.
func (c Cloud) Ignition(infraID string) string { return c.text(filepath.Join("ignition", infraID)) }

// Violations are what must never happen, and has.
func (c Cloud) Violations() string { return c.text("violations") }

// Notes are what runs have noted, a line each: created INFRAID, waited, destroy.
func (c Cloud) Notes() []string { return strings.Fields(c.text("notes")) }

func (c Cloud) text(name string) string {
	raw, err := os.ReadFile(c.path(name))
	if err != nil {
		return ""
	}
	return string(raw)
}

func (c Cloud) names(parts ...string) []string {
	entries, err := os.ReadDir(c.path(parts...))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

func (c Cloud) put(content string, parts ...string) error {
	path := c.path(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func (c Cloud) add(name, line string) {
	f, err := os.OpenFile(c.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, line)
		err = f.Close()
	}
	if err != nil {
		panic(err) // a cloud that forgets proves nothing
	}
}

func (c Cloud) note(line string) { c.add("notes", line) }

func (c Cloud) violate(format string, args ...any) { c.add("violations", fmt.Sprintf(format, args...)) }

// strikes reports whether a fault is there, and takes one of it.
func (c Cloud) strikes(name string) bool {
	left := c.text(filepath.Join("faults", name))
	if left == "" {
		return false
	}
	return c.put(left[1:], "faults", name) == nil
}

// pause waits while the place hangs.
func (c Cloud) pause(place string) {
	for {
		if _, err := os.Stat(c.path("hang", place)); err != nil {
			return
		}
		if !c.Hung(place) {
			_ = c.put("", "hung", place) // the test that waits for it tells
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (c Cloud) thing(infraID, name string) string { return c.path("clusters", infraID, name) }

func (c Cloud) has(infraID, name string) bool {
	_, err := os.Stat(c.thing(infraID, name))
	return err == nil
}

func (c Cloud) make(infraID, name string) error { return c.put("", "clusters", infraID, name) }

// begin notes a create, and what must not be: two clusters of one name, or one
// that is made twice.
func (c Cloud) begin(md metadata) {
	c.note("created:" + md.InfraID)
	for _, id := range c.Clusters() {
		if strings.HasPrefix(id, md.ClusterName+"-") {
			c.violate("%s is created while %s is there", md.InfraID, id)
		}
	}
	if n := strings.Count(c.text("notes"), "created:"+md.InfraID+"\n"); n > 1 {
		c.violate("%s is created %d times", md.InfraID, n)
	}
}

// lock is held while an installer works on a cluster; it goes with the process.
func (c Cloud) lock(infraID string) (free func(), err error) {
	if err := os.MkdirAll(c.path("locks"), fs.FileMode(0o700)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.path("locks", infraID), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("locking %s: %w", infraID, err)
	}
	return func() { _ = f.Close() }, nil
}
