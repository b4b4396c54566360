package containernode

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestThePauseProgramIsAnExecutable(t *testing.T) {
	for architecture, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		program, err := newPauseProgram(architecture)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Type != elf.ET_EXEC || len(f.Progs) != 1 || f.Entry != f.Progs[0].Vaddr+120 {
			t.Errorf("%s: %+v", architecture, f.FileHeader)
		}
	}
	if _, err := newPauseProgram("riscv64"); err == nil {
		t.Error("there is no program for riscv64")
	}
}

func TestThePauseProgramWaitsUntilItIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it is a program for Linux")
	}
	program, err := newPauseProgram(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

func TestThePauseArchiveIsAnImage(t *testing.T) {
	archive, err := newPauseArchive()
	if err != nil {
		t.Skip(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("the manifest is %s: %v", files["manifest.json"], err)
	}
	m := manifest[0]
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(files[m.Config], &config); err != nil {
		t.Fatal(err)
	}
	if len(m.Layers) != 1 || m.RepoTags[0] != pauseImage || config.RootFS.DiffIDs[0] != "sha256:"+digest(files[m.Layers[0]]) {
		t.Errorf("the image is %+v with %+v", m, config)
	}
}
