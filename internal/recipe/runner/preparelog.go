package runner

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// prepareLogPrefix and prepareLogSuffix enclose the UID of a cluster in the name of the log of prepare. No
	// infraID has the prefix.
	prepareLogPrefix, prepareLogSuffix = ".prepare-", ".log"
	// maxPrepareLogAge is how long the log of prepare is kept if the cluster never has a log of its own.
	maxPrepareLogAge = 7 * 24 * time.Hour
)

// PrepareLogPath returns the path of the log of the last run of prepare for a cluster that has no log of its
// own yet: prepare runs before the cluster has an infraID. It returns "" if the UID cannot be part of a name.
func (f Folder) PrepareLogPath(uid string) string {
	name := prepareLogPrefix + uid + prepareLogSuffix
	if uid == "" || strings.ContainsAny(uid, `/\`) || !filepath.IsLocal(name) {
		return ""
	}
	return filepath.Join(string(f), name)
}

// keepPrepareLog keeps the log of a run of prepare in dir. The log is an aid: its loss must not fail the
// cluster.
func (f Folder) keepPrepareLog(dir, uid string) {
	if path := f.PrepareLogPath(uid); path != "" {
		_ = os.Rename(filepath.Join(dir, logFile), path)
	}
}

// movePrepareLog moves the log of prepare to the log of the cluster.
func (f Folder) movePrepareLog(uid string, log io.Writer) {
	path := f.PrepareLogPath(uid)
	if path == "" {
		return
	}
	if raw, err := os.ReadFile(path); err == nil {
		_, _ = log.Write(raw) // as in keepPrepareLog
		_ = os.Remove(path)
	}
}

// removeOldPrepareLogs removes the logs of prepare of clusters that never had a log of their own.
func (f Folder) removeOldPrepareLogs() error {
	logs, err := filepath.Glob(filepath.Join(string(f), prepareLogPrefix+"*"+prepareLogSuffix))
	if err != nil {
		return fmt.Errorf("finding the logs of prepare: %w", err)
	}
	for _, path := range logs {
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < maxPrepareLogAge {
			continue
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("deleting an old log of prepare: %w", err)
		}
	}
	return nil
}
