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

func (c Cloud) filePath(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// InjectFault makes the next n runs that come by it fail there: invalid, expired,
// no-metadata, fail-STAGE, fail-destroy; deaf makes an installer ignore SIGTERM.
func (c Cloud) InjectFault(name string, n int) error {
	return c.writeFile(strings.Repeat("x", n), "faults", name)
}

// HangAt makes runs stop at a place until Free: prepare, a stage, late, destroy.
func (c Cloud) HangAt(place string) error { return c.writeFile("", "hang", place) }

// ReleaseHang ends a Hang.
func (c Cloud) ReleaseHang(place string) error { return os.Remove(c.filePath("hang", place)) }

// IsHungAt reports whether a run stands at a place.
func (c Cloud) IsHungAt(place string) bool {
	_, err := os.Stat(c.filePath("hung", place))
	return err == nil
}

// ListClusters are the infraIDs of what is there, sorted.
func (c Cloud) ListClusters() []string { return c.listNames("clusters") }

// ListResources are the things of a cluster, sorted.
func (c Cloud) ListResources(infraID string) []string { return c.listNames("clusters", infraID) }

// ReadIgnition is what the bootstrap machine of a cluster was given: its manifests.
func (c Cloud) ReadIgnition(infraID string) string {
	return c.readText(filepath.Join("ignition", infraID))
}

// ReadViolations are what must never happen, and has.
func (c Cloud) ReadViolations() string { return c.readText("violations") }

// ReadNotes are what runs have noted, a line each: created INFRAID, waited, destroy.
func (c Cloud) ReadNotes() []string { return strings.Fields(c.readText("notes")) }

func (c Cloud) readText(name string) string {
	raw, err := os.ReadFile(c.filePath(name))
	if err != nil {
		return ""
	}
	return string(raw)
}

func (c Cloud) listNames(parts ...string) []string {
	entries, err := os.ReadDir(c.filePath(parts...))
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

func (c Cloud) writeFile(content string, parts ...string) error {
	path := c.filePath(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func (c Cloud) appendLine(name, line string) {
	f, err := os.OpenFile(c.filePath(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, line)
		err = f.Close()
	}
	if err != nil {
		panic(err) // a cloud that forgets proves nothing
	}
}

func (c Cloud) appendNote(line string) { c.appendLine("notes", line) }

func (c Cloud) recordViolation(format string, args ...any) {
	c.appendLine("violations", fmt.Sprintf(format, args...))
}

// consumeFault reports whether a fault is there, and takes one of it.
func (c Cloud) consumeFault(name string) bool {
	left := c.readText(filepath.Join("faults", name))
	if left == "" {
		return false
	}
	return c.writeFile(left[1:], "faults", name) == nil
}

// waitWhileHung waits while the place hangs.
func (c Cloud) waitWhileHung(place string) {
	for {
		if _, err := os.Stat(c.filePath("hang", place)); err != nil {
			return
		}
		if !c.IsHungAt(place) {
			_ = c.writeFile("", "hung", place) // the test that waits for it tells
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (c Cloud) resourcePath(infraID, name string) string {
	return c.filePath("clusters", infraID, name)
}

func (c Cloud) hasResource(infraID, name string) bool {
	_, err := os.Stat(c.resourcePath(infraID, name))
	return err == nil
}

func (c Cloud) createResource(infraID, name string) error {
	return c.writeFile("", "clusters", infraID, name)
}

// recordCreate notes a create, and what must not be: two clusters of one name, or one
// that is made twice.
func (c Cloud) recordCreate(md metadata) {
	c.appendNote("created:" + md.InfraID)
	for _, id := range c.ListClusters() {
		if strings.HasPrefix(id, md.ClusterName+"-") {
			c.recordViolation("%s is created while %s is there", md.InfraID, id)
		}
	}
	if n := strings.Count(c.readText("notes"), "created:"+md.InfraID+"\n"); n > 1 {
		c.recordViolation("%s is created %d times", md.InfraID, n)
	}
}

// lockCluster is held while an installer works on a cluster; it goes with the process.
func (c Cloud) lockCluster(infraID string) (free func(), err error) {
	if err := os.MkdirAll(c.filePath("locks"), fs.FileMode(0o700)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.filePath("locks", infraID), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("locking %s: %w", infraID, err)
	}
	return func() { _ = f.Close() }, nil
}
