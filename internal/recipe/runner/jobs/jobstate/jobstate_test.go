package jobstate_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/hubjob/hubjobtest"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

func newStore(t *testing.T) jobstate.Store {
	t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: "s"}
	objects := []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
	for _, name := range jobstate.PartNames(key.Name) {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}})
	}
	hub, err := hubjobtest.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	return jobstate.Store{API: hub, Key: key}
}

func randomBytes(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // it never fails
	return raw
}

func TestPartsAreWrittenByTheCurrentRunOnly(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	first, second := randomBytes(jobstate.PartSize+10), randomBytes(100)
	if err := s.TakeParts(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	one, err := s.WriteParts(ctx, "a", jobstate.Folder{}, first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.WriteParts(ctx, "a", one, second)
	if err != nil || two.First == one.First {
		t.Errorf("the second folder replaces the first one: %+v, %v", two, err)
	}
	if err := s.TakeParts(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteParts(ctx, "a", two, []byte("late")); !errors.Is(err, jobstate.ErrOvertaken) {
		t.Errorf("an earlier run writes: %v", err)
	}
	for _, want := range []struct {
		at      jobstate.Folder
		content []byte
	}{{one, first}, {two, second}} {
		if got, err := s.ReadFolder(ctx, want.at); err != nil || !bytes.Equal(got, want.content) {
			t.Errorf("read %d bytes, want %d: %v", len(got), len(want.content), err)
		}
	}
	two.Digest = one.Digest
	if _, err := s.ReadFolder(ctx, two); !errors.Is(err, jobstate.ErrDamaged) {
		t.Errorf("another content: %v", err)
	}
}

func TestAStateThatIsTooLargeOrDamagedIsRejected(t *testing.T) {
	for name, st := range map[string]jobstate.State{
		"folder":     {Folder: jobstate.Folder{Inline: randomBytes(jobstate.MaxInline + 1)}},
		"answer":     {Answer: randomBytes(jobstate.MaxAnswer + 1)},
		"kubeconfig": {Kubeconfig: randomBytes(jobstate.MaxKubeconfig + 1)},
	} {
		if _, err := st.Encode(); !errors.As(err, new(*jobstate.TooLargeError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, err := zip.Write(make([]byte, recipe.MaxAnswer+1))
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"garbage":          {"run.json": []byte("garbage")},
		"parts elsewhere":  {"folder.json": []byte(`{"first":3,"parts":2}`)},
		"a negative part":  {"folder.json": []byte(`{"first":-1,"parts":1}`)},
		"a large log":      {"log": make([]byte, jobstate.MaxLog+1)},
		"a bomb":           {"answer.json.gz": bomb.Bytes()},
		"a damaged answer": {"answer.json.gz": []byte("x")},
	} {
		if _, err := jobstate.Decode(data); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAFolderIsUnpackedWithLinksAndPermissions(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/b/tool": 0o700, "a/key": 0o600, ".lock": 0o600, "a/.lock": 0o400} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "a/b/tool", "broken": "/nonexistent"} {
		if err := os.Symlink(target, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	packed, err := jobstate.PackFolder(from, ".lock")
	again, _ := jobstate.PackFolder(from, ".lock")
	if err != nil || !bytes.Equal(packed, again) {
		t.Fatalf("packing twice differs: %v", err)
	}
	if err := jobstate.UnpackFolder(packed, to); err != nil {
		t.Fatal(err)
	}
	repacked, err := jobstate.PackFolder(to)
	if err != nil || !bytes.Equal(packed, repacked) {
		t.Errorf("the unpacked folder differs: %v", err)
	}
	if info, err := os.Stat(filepath.Join(to, "link")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("link: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(to, ".lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an excluded file was packed: %v", err)
	}
}

func TestALargeFolderIsNotPacked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large"), randomBytes(recipe.MaxState+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := jobstate.PackFolder(dir); !errors.Is(err, jobstate.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// packEntries packs entries that PackFolder never writes.
func packEntries(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, h := range headers {
		err := archive.WriteHeader(&h)
		if err == nil && h.Size > 0 {
			_, err = archive.Write(bytes.Repeat([]byte("x"), int(h.Size)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNothingIsUnpackedOutsideTheFolder(t *testing.T) {
	file := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: size}
	}
	for name, packed := range map[string][]byte{
		"a path above":            packEntries(t, file("../outside", 1)),
		"an absolute path":        packEntries(t, file("/tmp/hotspare-outside", 1)),
		"a link to elsewhere":     packEntries(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, file("l/outside", 1)),
		"a device":                packEntries(t, tar.Header{Name: "d", Typeflag: tar.TypeChar}),
		"more than a state":       packEntries(t, file("large", 2*recipe.MaxState+1)),
		"no archive":              []byte("no archive"),
		"a file over a directory": packEntries(t, tar.Header{Name: "d", Typeflag: tar.TypeDir, Mode: 0o700}, file("d", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := jobstate.UnpackFolder(packed, dir); err == nil || !strings.Contains(err.Error(), "unpacking the state folder") {
				t.Errorf("got %v", err)
			}
			if entries, err := os.ReadDir(top); err != nil || len(entries) != 1 {
				t.Errorf("beside the folder: %v, %v", entries, err)
			}
		})
	}
}
