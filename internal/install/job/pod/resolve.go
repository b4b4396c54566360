package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"hotspare.io/hotspare/internal/install/job/state"
)

// References is the path in a release image of the file that lists the images of the release.
const References = "/release-manifests/image-references"

// ResolveImages records in the state the images that the references in a file name. It runs in the
// release image.
func ResolveImages(ctx context.Context, o Options, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the release's images: %w", err)
	}
	images, err := parseImageReferences(raw)
	if err != nil {
		return fmt.Errorf("reading the release's images in %s: %w", file, err)
	}
	_, err = o.Store.EditState(ctx, func(s *state.State) error {
		s.InstallerImage, s.CLIImage = images["installer"], images["cli"]
		return nil
	})
	return err
}

// parseImageReferences returns the images of an ImageStream by tag.
func parseImageReferences(raw []byte) (map[string]string, error) {
	var stream struct {
		Spec struct {
			Tags []struct {
				Name string `json:"name"`
				From struct {
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &stream); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, tag := range stream.Spec.Tags {
		found[tag.Name] = tag.From.Name
	}
	for _, need := range []string{"installer", "cli"} {
		if found[need] == "" {
			return nil, fmt.Errorf("no tag %q: check that the release image is an OpenShift release", need)
		}
	}
	return found, nil
}
