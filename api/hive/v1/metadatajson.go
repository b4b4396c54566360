package v1

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// MetadataJSON is a metadata.json as a ClusterProvision stores it: in base64, which is
// how Hive's types, and so its clients, read it.
//
// Early versions of hotspare stored the text itself. A client with Hive's types cannot
// read that, nor any list that contains it. It is still read here, and marked as Plain,
// so that a controller can store it again.
//
// +kubebuilder:validation:Type=string
type MetadataJSON struct {
	// Raw is the metadata.json.
	Raw []byte
	// Plain is true of a stored value that is not in base64.
	Plain bool
}

// MarshalJSON writes base64; a Plain value as it is stored.
func (m MetadataJSON) MarshalJSON() ([]byte, error) {
	if m.Plain {
		return json.Marshal(string(m.Raw))
	}
	return json.Marshal(m.Raw)
}

// UnmarshalJSON reads base64 or the text itself. Text that is neither is an error.
func (m *MetadataJSON) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		*m = MetadataJSON{Raw: []byte(text), Plain: true}
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	*m = MetadataJSON{Raw: raw}
	return nil
}
