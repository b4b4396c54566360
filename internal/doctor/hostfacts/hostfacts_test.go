package hostfacts

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/doctor"
)

func TestReadReturnsTheFactsOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	f := Read(t.Context(), dir)
	if f.OS != runtime.GOOS || f.UserID != os.Geteuid() || f.LoopbackError != "" || f.OpenFiles.Value <= 0 || f.OpenFiles.Err != "" {
		t.Errorf("the facts are %+v", f)
	}
	if d := f.DataFolder; d.Path != dir || !d.Exists || d.Err != "" || d.Free.Err != "" || d.Free.Value <= 0 {
		t.Errorf("the data folder is %+v", d)
	}
	if doctor.HasProblem(doctor.Findings(f), doctor.Hub) {
		t.Errorf("a machine that runs these tests has a problem for the hub: %+v", doctor.Findings(f))
	}
}

func TestErrorsOfTheNetworkHaveNoAddresses(t *testing.T) {
	_, err := net.Listen("tcp4", "192.0.2.1:0") // an address for documentation
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Fatalf("listening on an address of another machine: %v", err)
	}
	if got := findCause(err).Error(); !strings.HasPrefix(got, "bind: ") || strings.Contains(got, "192.0.2.1") {
		t.Errorf("%q", got)
	}
	if other := errors.New("other"); !errors.Is(findCause(other), other) {
		t.Error("another error is changed")
	}
}

func TestDataFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{"file": "", "folder/x": ""} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "folder", "broken": "nowhere"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]struct {
		exists bool
		err    string
	}{
		filepath.Join(dir, "folder"):  {exists: true},
		"folder":                      {exists: true},
		"./folder/":                   {exists: true},
		"link":                        {exists: true},
		"new":                         {},
		"folder/new/below":            {},
		filepath.Join(dir, "a/b/c/d"): {},
		"file":                        {err: "file is not a folder"},
		"file/below":                  {err: "not a directory"},
		"broken":                      {err: "broken is a link to a folder that does not exist"},
		"broken/below":                {err: "broken is a link to a folder that does not exist"},
	} {
		d := readDataFolder(path)
		if d.Path != path || d.Exists != want.exists || (d.Err != "") != (want.err != "") || !strings.Contains(d.Err, want.err) {
			t.Errorf("%s: %+v, want %+v", path, d, want)
		}
		if want.err == "" && (d.Free.Value <= 0 || d.Free.Err != "") {
			t.Errorf("%s: the free space is %+v", path, d.Free)
		}
	}
	for _, path := range []string{"new", "folder/new", "a"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was created", path)
		}
	}
}

func TestAFolderThatTheUserMayNotWriteIsReported(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // the folder must not be writable
		t.Fatal(err)
	}
	if d := readDataFolder(filepath.Join(dir, "new")); !strings.Contains(d.Err, "permission denied") {
		t.Errorf("%+v", d)
	}
}
