package state

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // the modes after unpacking must not depend on these
			t.Fatal(err)
		}
	}
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		got[name] = string(content)
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600: the folder contains keys; %v", name, info.Mode(), err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAFolderIsUnpackedAsItWasPacked(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	files := map[string]string{"metadata.json": "{}", "auth/kubeconfig": "k", "tls/a/b.key": strings.Repeat("x", 1<<16), "empty": ""}
	writeFiles(t, from, files)
	writeFiles(t, from, map[string]string{"openshift-install": "the program", ".openshift_install.log": "the log"})
	packed, err := PackFolder(from, "openshift-install", ".openshift_install.log")
	if err != nil {
		t.Fatal(err)
	}
	again, err := PackFolder(from, "openshift-install", ".openshift_install.log")
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("packing again gives other bytes, so the digest would differ: %v", err)
	}
	if err := UnpackFolder(packed, to); err != nil {
		t.Fatal(err)
	}
	if got := readFiles(t, to); !maps.Equal(got, files) {
		t.Errorf("got %v", got)
	}
}

// packFile packs one file under a name that PackFolder never gives.
func packFile(t *testing.T, name string, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestADamagedFolderIsAnErrorAndWritesNothingElsewhere(t *testing.T) {
	packed := packFile(t, "f", 1<<16)
	for name, damaged := range map[string][]byte{
		"nothing":                nil,
		"not an archive":         []byte("not an archive"),
		"cut off":                packed[:len(packed)/2],
		"a path out of the way":  packFile(t, "../outside", 1),
		"an absolute path":       packFile(t, "/tmp/outside", 1),
		"more than fits on disk": packFile(t, "large", unpackedLimit+1),
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "folder")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := UnpackFolder(damaged, dir); err == nil || !strings.Contains(err.Error(), "unpacking the installer's folder") {
				t.Errorf("got %v", err)
			}
			if entries, err := os.ReadDir(top); err != nil || len(entries) != 1 {
				t.Errorf("beside the folder are %v, %v", entries, err)
			}
		})
	}
}
