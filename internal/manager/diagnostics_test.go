package manager

import (
	"fmt"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/diagnostics/bucket"
	"hotspare.io/hotspare/internal/diagnostics/folder"
)

func TestAPlaceOfBundlesIsAFolderOrABucket(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	for text, want := range map[string]string{
		"/var/lib/x":                           fmt.Sprintf("%T", folder.Folder{}),
		"s3://bundles/x?region=eu-west-1":      fmt.Sprintf("%T", &bucket.Bucket{}),
		"s3://bundles?endpoint=http://[::1]:9": fmt.Sprintf("%T", &bucket.Bucket{}),
	} {
		place, err := ParseDiagnosticsPlace(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		store, err := place.Open(t.Context())
		if got := fmt.Sprintf("%T", store); err != nil || got != want {
			t.Errorf("%s is a %s, %v", text, got, err)
		}
	}
	if place, err := ParseDiagnosticsPlace("x"); err != nil || !strings.HasPrefix(place.Folder, "/") {
		t.Errorf("a relative folder is %q, %v", place.Folder, err)
	}
	for _, bad := range []string{"https://bundles", "S3://bundles", "gs://key:hunter2@bundles", "s3://key:hunter2@bundles"} {
		if _, err := ParseDiagnosticsPlace(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
