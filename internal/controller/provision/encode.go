package provision

import (
	"context"
	"fmt"

	"hotspare.io/hotspare/internal/patch"
)

// encodeMetadata stores the metadata.json of attempts in base64 where an earlier version stored
// plain text, because clients with Hive's types cannot list such attempts.
func (p *pass) encodeMetadata(ctx context.Context) error {
	for _, cp := range p.attempts {
		if cp.Spec.MetadataJSON == nil || !cp.Spec.MetadataJSON.Plain {
			continue
		}
		before := cp.DeepCopy()
		cp.Spec.MetadataJSON.Plain = false
		if _, err := patch.Object(ctx, p.Client, before, cp); err != nil {
			return fmt.Errorf("encoding the metadata of ClusterProvision %s: %w", cp.Name, err)
		}
	}
	return nil
}
