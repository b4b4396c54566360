package pullthrough

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Settings are what hotspare up decides for all clusters of this computer. It writes them at each
// start, and a cluster reads them when its control plane starts.
type Settings struct {
	// Limit is the maximum size of the cache in bytes; 0 turns it off.
	Limit int64 `json:"limit"`
	// InsecureRegistries are registries, as host or host:port, to which clusters may connect by plain
	// HTTP and at any address.
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`
}

func settingsPath(dir string) string { return filepath.Join(dir, "settings.json") }

// WriteSettings writes the settings of the cache in dir.
func WriteSettings(dir string, settings Settings) error {
	raw, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("writing the settings of the image cache: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing the settings of the image cache: %w", err)
	}
	return (&records{dir: dir}).write(settingsPath(dir), raw)
}

// ReadSettings reads the settings of the cache in dir. Without settings, there is no cache.
func ReadSettings(dir string) (Settings, error) {
	var settings Settings
	raw, err := os.ReadFile(settingsPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return settings, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil {
		return settings, fmt.Errorf("reading the settings of the image cache: %w", err)
	}
	return settings, nil
}
