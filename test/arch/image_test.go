package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var copied = regexp.MustCompile(`(?m)^COPY (dist/\S+) `)

// make image builds each image of the Containerfile, and all that they copy.
func TestMakeImageBuildsWhatTheContainerfileCopies(t *testing.T) {
	root := filepath.Join("..", "..")
	raw, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(filepath.Join(root, ".containerignore"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "image", "ARCH=amd64", "CONTAINER_TOOL=tool", "VERSION=v1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n image: %v\n%s", err, out)
	}
	says := string(out)
	for _, want := range []string{
		"tool build -f Containerfile --target manager --build-arg TARGETARCH=amd64 -t hotspare.io/hotspare-manager:v1 .",
		"tool build -f Containerfile --target agent --build-arg TARGETARCH=amd64 -t hotspare.io/hotspare:v1 .",
		"-o dist/hotspare-linux-amd64 ./cmd/hotspare\n",
	} {
		if !strings.Contains(says, want) {
			t.Errorf("make image does not say %q:\n%s", want, says)
		}
	}
	for _, m := range copied.FindAllStringSubmatch(string(raw), -1) {
		if file := strings.Replace(m[1], "${TARGETARCH}", "amd64", 1); !strings.Contains(says, " "+file) {
			t.Errorf("make image does not make %s, which the Containerfile copies", file)
		}
		if allowed := "!" + strings.Replace(m[1], "${TARGETARCH}", "*", 1); !strings.Contains(string(ignored), allowed+"\n") {
			t.Errorf(".containerignore has no line %s", allowed)
		}
	}
}
