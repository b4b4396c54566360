package imagestore

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

const nameExample = "use a name such as busybox:1.36 or registry.example.com/team/app:v1"

// parseName parses and completes the name of an image: "busybox" is docker.io/library/busybox:latest.
func parseName(text string) (reference.NamedTagged, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no image name (%w): %s", text, err, nameExample)
	}
	if _, isDigested := named.(reference.Digested); isDigested {
		return nil, fmt.Errorf("%q contains a digest: specify a tag instead; clusters find an image by its digest without a name", text)
	}
	return reference.TagNameOnly(named).(reference.NamedTagged), nil
}

const (
	nameAnnotation    = "io.containerd.image.name"
	refNameAnnotation = "org.opencontainers.image.ref.name"
)

// annotatedName returns the name in the annotations of a descriptor; "" if there is none. The
// annotation of OCI can also be the tag only.
func annotatedName(annotations map[string]string) string {
	if name := annotations[nameAnnotation]; isName(name) {
		return name
	}
	if name := annotations[refNameAnnotation]; isName(name) {
		return name
	}
	return ""
}

// isName reports whether a text of an archive is meant as a name: not a tag, and not a digest, by which
// clusters find an image without a name.
func isName(text string) bool {
	return strings.ContainsAny(text, "/:") && !strings.Contains(text, "@")
}
