//go:build linux

package containernode

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// imageNamespace is the namespace of containerd in which the kubelet's images are.
const imageNamespace = "k8s.io"

// importImage imports the images of an archive into containerd.
func importImage(ctx context.Context, p programs, archive []byte) error {
	cmd := exec.CommandContext(ctx, p.ctr, "--address", containerdSocket, "--namespace", imageNamespace, "images", "import", "-")
	cmd.Stdin = bytes.NewReader(archive)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("importing an image: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
