package up

import (
	"path/filepath"
	"testing"

	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestParseImageCacheSize(t *testing.T) {
	for text, want := range map[string]int64{"": -1, "0": 0, "20G": 20e9, "512Mi": 512 << 20, "1000": 1000, "1.5G": 1.5e9} {
		if got, err := ParseImageCacheSize(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "20 GB", "20GB", "large", "-5Gi"} {
		if got, err := ParseImageCacheSize(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestCheckRegistries(t *testing.T) {
	for registry, want := range map[string]bool{
		"localhost:5000": true, "localhost": true, "registry.example.com": true, "127.0.0.1:5000": true, "registry:5000": true,
		"registry": false, "http://localhost:5000": false, "localhost:5000/team": false, "": false, "*": false, "a b": false,
	} {
		if err := CheckRegistries([]string{"quay.io", registry}); (err == nil) != want {
			t.Errorf("%q: %v", registry, err)
		}
	}
}

func TestTheImageCacheHasADefaultSize(t *testing.T) {
	for disk, want := range map[int64]int64{0: 0, 50e9: 5e9, 200e9: 20e9, 4e12: 20e9} {
		if got := DefaultImageCacheSize(disk); got != want {
			t.Errorf("a disk of %d: %d, want %d", disk, got, want)
		}
	}
	o := Options{Dir: t.TempDir(), ImageCacheSize: -1, InsecureRegistries: []string{"localhost:5000"}}
	dir := machine.ImageCachePath(filepath.Join(o.Dir, "machines"))
	if err := o.configureImageCache(); err != nil {
		t.Fatal(err)
	}
	if got, err := pullthrough.ReadSettings(dir); err != nil || got.Limit <= 0 || len(got.InsecureRegistries) != 1 {
		t.Errorf("by default: %v, %v", got, err)
	}
	o = Options{Dir: o.Dir}
	if err := o.configureImageCache(); err != nil {
		t.Fatal(err)
	}
	if got, err := pullthrough.ReadSettings(dir); err != nil || got.Limit != 0 || len(got.InsecureRegistries) != 0 {
		t.Errorf("turned off: %v, %v", got, err)
	}
}
