package v1

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// MetadataJSON is a metadata.json as a ClusterProvision stores it: base64-encoded, as Hive's types,
// and so its clients, read it.
//
// Early versions of hotspare stored the text itself. A client with Hive's types can read neither
// such an object nor a list that contains one. UnmarshalJSON reads the text and sets Plain, so that
// a controller can store the value again.
//
// +kubebuilder:validation:Type=string
type MetadataJSON struct {
	// Raw is the decoded metadata.json.
	Raw []byte
	// Plain is true if the stored value is not base64-encoded.
	Plain bool
}

// MarshalJSON encodes the value as base64, and a Plain value as it is stored.
func (m MetadataJSON) MarshalJSON() ([]byte, error) {
	if m.Plain {
		return json.Marshal(string(m.Raw))
	}
	return json.Marshal(m.Raw)
}

// UnmarshalJSON decodes base64 or the text itself. It returns an error for any other text.
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
