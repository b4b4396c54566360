package installertest

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

// Cloud is the folder in which a stand-in creates its clusters.
type Cloud string

func (c Cloud) filePath(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// InjectFault makes the next n runs that reach the fault fail there: invalid, expired, no-metadata,
// fail-STAGE, fail-destroy; deaf makes an installer ignore SIGTERM.
func (c Cloud) InjectFault(name string, n int) error {
	return c.writeFile(strings.Repeat("x", n), "faults", name)
}

// HangAt makes runs stop at a place until ReleaseHang: prepare, a stage, late, destroy.
func (c Cloud) HangAt(place string) error { return c.writeFile("", "hang", place) }

// ReleaseHang ends a hang that HangAt started.
func (c Cloud) ReleaseHang(place string) error { return os.Remove(c.filePath("hang", place)) }

// IsHungAt reports whether a run hangs at a place.
func (c Cloud) IsHungAt(place string) bool {
	_, err := os.Stat(c.filePath("hung", place))
	return err == nil
}

// ListClusters returns the infraIDs of the existing clusters, sorted.
func (c Cloud) ListClusters() []string { return c.listNames("clusters") }

// ListResources returns the resources of a cluster, sorted.
func (c Cloud) ListResources(infraID string) []string { return c.listNames("clusters", infraID) }

// ReadIgnition returns what the bootstrap machine of a cluster received: its manifests.
func (c Cloud) ReadIgnition(infraID string) string {
	return c.readText(filepath.Join("ignition", infraID))
}

// ReadViolations returns the recorded events that must never happen.
func (c Cloud) ReadViolations() string { return c.readText("violations") }

// ReadNotes returns the notes that runs have recorded, one per line: created INFRAID, waited,
// destroy.
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
		panic(err) // a cloud that loses data proves nothing
	}
}

func (c Cloud) appendNote(line string) { c.appendLine("notes", line) }

func (c Cloud) recordViolation(format string, args ...any) {
	c.appendLine("violations", fmt.Sprintf(format, args...))
}

// consumeFault reports whether a fault is injected, and consumes one occurrence of it.
func (c Cloud) consumeFault(name string) bool {
	left := c.readText(filepath.Join("faults", name))
	if left == "" {
		return false
	}
	return c.writeFile(left[1:], "faults", name) == nil
}

// waitWhileHung blocks while the place hangs.
func (c Cloud) waitWhileHung(place string) {
	for {
		if _, err := os.Stat(c.filePath("hang", place)); err != nil {
			return
		}
		if !c.IsHungAt(place) {
			_ = c.writeFile("", "hung", place) // the test that waits for it reports a failure
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

// recordCreate records a create, and these violations: two clusters with one name, or one cluster
// created twice.
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

// lockCluster locks a cluster while an installer works on it; the lock ends with the process.
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
