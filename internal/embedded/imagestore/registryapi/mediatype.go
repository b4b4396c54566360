package registryapi

import (
	"encoding/json"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// DetectMediaType returns the media type of a manifest or of an index; "" for anything else.
func DetectMediaType(raw []byte) types.MediaType {
	var m struct {
		SchemaVersion     int             `json:"schemaVersion"`
		MediaType         types.MediaType `json:"mediaType"`
		Config, Manifests json.RawMessage
	}
	switch err := json.Unmarshal(raw, &m); {
	case err != nil || m.SchemaVersion != 2:
		return ""
	case m.MediaType.IsImage() || m.MediaType.IsIndex():
		return m.MediaType
	case m.MediaType != "":
		return ""
	case m.Manifests != nil:
		return types.OCIImageIndex
	case m.Config != nil:
		return types.OCIManifestSchema1
	}
	return ""
}
