package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processesOf returns the command lines of the processes that name dir.
func processesOf(dir string) ([]string, error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	var out []string
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue // it has ended meanwhile
		}
		line := string(bytes.TrimSpace(bytes.ReplaceAll(raw, []byte{0}, []byte{' '})))
		if strings.Contains(line+"/", dir+"/") || strings.Contains(line, dir+" ") {
			out = append(out, fmt.Sprintf("%d %s", pid, line))
		}
	}
	return out, nil
}

// foldersIn returns the names of the folders in dir, without hidden ones; none if
// there is no dir.
func foldersIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
