package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxProblem is the maximum length in bytes of a problem that is read.
const maxProblem = 1 << 10

// ProblemPath returns the path of the file with the problem of a machine; dir is the machine's folder.
func ProblemPath(dir string) string { return filepath.Join(dir, "problem") }

// WriteProblem records why the node of a machine cannot become ready, as a clause; "" if nothing is known.
func WriteProblem(dir, problem string) error {
	if err := replaceProblem(ProblemPath(dir), problem); err != nil {
		return fmt.Errorf("recording a problem: %w", err)
	}
	return nil
}

// replaceProblem replaces the file at once: a reader sees the old problem or the new one.
func replaceProblem(path, problem string) error {
	if problem == "" {
		return ignoreNotExist(os.Remove(path))
	}
	aside := path + ".new"
	if err := os.WriteFile(aside, []byte(problem+"\n"), 0o600); err != nil {
		return errors.Join(err, ignoreNotExist(os.Remove(aside)))
	}
	return os.Rename(aside, path)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadProblem returns the recorded problem of a machine; "" if there is none.
func ReadProblem(dir string) string {
	f, err := os.Open(ProblemPath(dir))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxProblem))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(raw)), " ")
}
