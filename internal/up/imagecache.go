package up

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"

	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const (
	// maxDefaultImageCacheSize is the default size of the cache on a large disk.
	maxDefaultImageCacheSize = 20e9
	// diskShare is the part of a disk that the cache uses at most by default: a tenth.
	diskShare = 10
)

// ParseImageCacheSize parses a size such as 20G, 512Mi or 0. An empty text selects the default.
func ParseImageCacheSize(text string) (int64, error) {
	if text == "" {
		return -1, nil
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() < 0 {
		return 0, fmt.Errorf("%q is no size: use a number of bytes such as 20G or 512Mi, or 0 to keep no images", text)
	}
	return size.Value(), nil
}

// CheckRegistries returns an error unless all texts are registries, as host or host:port.
func CheckRegistries(registries []string) error {
	for _, registry := range registries {
		named, err := reference.ParseNormalizedNamed(registry + "/image")
		if err != nil || reference.Domain(named) != registry || strings.Contains(registry, "/") {
			return fmt.Errorf("%q is no registry: use host:port or a host name with a domain, as in the names of its images", registry)
		}
	}
	return nil
}

// DefaultImageCacheSize returns the default size of the cache on a disk of a size.
func DefaultImageCacheSize(disk int64) int64 { return min(disk/diskShare, maxDefaultImageCacheSize) }

// configureImageCache writes the settings that control planes read when they start.
func (o Options) configureImageCache() error {
	size := o.ImageCacheSize
	if size < 0 {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(o.Dir, &disk); err != nil {
			return fmt.Errorf("reading the size of the disk of %s: %w", o.Dir, err)
		}
		size = DefaultImageCacheSize(int64(disk.Blocks) * int64(disk.Bsize)) //nolint:unconvert // the types differ on darwin
	}
	dir := machine.ImageCachePath(filepath.Join(o.Dir, "machines"))
	err := pullthrough.WriteSettings(dir, pullthrough.Settings{Limit: size, InsecureRegistries: o.InsecureRegistries})
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return addStorageRemedy(o.Dir, err)
	}
	return err
}
