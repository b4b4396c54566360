// Package helmcharttest packages Helm charts for tests.
package helmcharttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
)

// Package returns a packaged chart with these files, by their path in the folder of the chart. It has a valid
// Chart.yaml of chart web, unless the files have one.
func Package(files map[string]string) []byte {
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n"}
	maps.Copy(all, files)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	archive := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := archive.WriteHeader(&tar.Header{Name: "web/" + name, Mode: 0o644, Size: int64(len(all[name]))}); err != nil {
			panic(fmt.Sprintf("packaging %s: %v", name, err)) // a mistake in a test
		}
		if _, err := archive.Write([]byte(all[name])); err != nil {
			panic(fmt.Sprintf("packaging %s: %v", name, err))
		}
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
