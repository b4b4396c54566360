package recipes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programVariable is the environment variable with the program that runs as the stand-ins, if a test
// binary has built it that runs this one.
const programVariable = "RECIPES_STANDIN_PROGRAM"

// programFolder is the folder for the program that runs as the stand-ins. It exists while the tests run.
var programFolder string

// runTests runs the tests and returns the exit code.
func runTests(m *testing.M) int {
	var err error
	if programFolder, err = os.MkdirTemp("", "hotspare-standins-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programFolder)
	return m.Run()
}

// findProgram returns the program that runs as the stand-ins: this test binary, or the same tests built
// without the race detector, with which a program takes several times as long to start. A stand-in has
// no goroutines of its own, and a run of these tests starts thousands of them.
var findProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(programVariable); path != "" {
		return path, nil
	}
	if !raceDetector {
		return os.Executable()
	}
	path := filepath.Join(programFolder, "standins")
	build := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the stand-ins: %w\n%s", err, out)
	}
	return path, nil
})
