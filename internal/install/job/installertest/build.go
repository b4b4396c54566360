package installertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program is the package of the installer.
const program = "hotspare.io/hotspare/internal/install/job/installertest/openshift-install"

// folder is the folder for the installer. It exists while the tests run.
var folder string

// RunTests runs the tests of a test binary and returns its exit code. A TestMain whose tests call
// BuildInstaller must call it.
func RunTests(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "hotspare-installer-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder) //nolint:errcheck // the system removes temporary files later
	return m.Run()
}

// BuildInstaller returns the path of the installer. The first call builds it, without the race detector:
// with it, and as part of a test binary, a program takes several times as long to start.
func BuildInstaller() (string, error) { return build() }

var build = sync.OnceValues(func() (string, error) {
	if folder == "" {
		return "", errors.New("TestMain does not call installertest.RunTests")
	}
	path := filepath.Join(folder, filepath.Base(program))
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the installer: %w\n%s", err, out)
	}
	return path, nil
})
