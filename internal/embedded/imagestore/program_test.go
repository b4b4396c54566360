package imagestore

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestAStaticProgramBecomesAnImageThatStartsIt(t *testing.T) {
	for _, size := range []int{200, 512, 1000, 100_000} { // the end of the layer is filled up to a block
		program := newELF(t, elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD, size)
		store := newStore(t)
		images, err := store.Load(t.Context(), writeProgram(t, program), LoadOptions{Name: "server:1", Architecture: "amd64"})
		if err != nil {
			t.Fatal(err)
		}
		if len(images) != 1 || images[0].Name != "docker.io/library/server:1" || !slices.Equal(images[0].Platforms, []string{"linux/amd64"}) {
			t.Fatalf("loaded %+v", images)
		}
		checkProgramImage(t, store, program)
	}
}

// checkProgramImage pulls the image as a node does.
func checkProgramImage(t *testing.T, store *Store, program []byte) {
	t.Helper()
	server := httptest.NewServer(store.Handler())
	t.Cleanup(server.Close)
	pulled, err := remote.Image(parse(t, strings.TrimPrefix(server.URL, "http://")+"/library/server:1"), remote.WithContext(t.Context()))
	must(t, err)
	checkLayers(t, pulled)
	config, err := pulled.ConfigFile()
	must(t, err)
	if got := config.Config.Entrypoint; !slices.Equal(got, []string{"/server"}) {
		t.Errorf("the entry point is %q", got)
	}
	layers, err := pulled.Layers()
	must(t, err)
	if len(layers) != 1 {
		t.Fatalf("the image has %d layers", len(layers))
	}
	content, err := layers[0].Uncompressed()
	must(t, err)
	reader := tar.NewReader(content)
	header, err := reader.Next()
	must(t, err)
	if header.Name != "server" || header.Mode != 0o755 {
		t.Errorf("the layer contains %s with mode %o", header.Name, header.Mode)
	}
	got, err := io.ReadAll(reader)
	must(t, err)
	if !bytes.Equal(got, program) {
		t.Error("the layer contains another program")
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the program comes %v", err)
	}
}

func TestAProgramHasTheSameDigestEachTime(t *testing.T) {
	path := writeProgram(t, newELF(t, elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD, 1000))
	var digests []string
	for range 2 {
		images, err := newStore(t).Load(t.Context(), path, LoadOptions{Name: "a:1", Architecture: "amd64"})
		must(t, err)
		digests = append(digests, images[0].Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %s and %s", digests[0], digests[1])
	}
}

func TestAProgramThatCannotBeAnImageIsRefused(t *testing.T) {
	for title, c := range map[string]struct {
		program []byte
		name    string
		want    string
	}{
		"it needs shared libraries": {newELF(t, elf.EM_X86_64, elf.ET_DYN, elf.PT_INTERP, 500), "a:1", "link it statically"},
		"it is an object file":      {newELF(t, elf.EM_X86_64, elf.ET_REL, elf.PT_LOAD, 500), "a:1", "specify the program itself"},
		"it is truncated":           {newELF(t, elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD, 500)[:30], "a:1", "build it again"},
		"of another architecture":   {newELF(t, elf.EM_AARCH64, elf.ET_EXEC, elf.PT_LOAD, 500), "a:1", "the clusters of this computer need linux/amd64"},
		"of an unknown one":         {newELF(t, elf.EM_68K, elf.ET_EXEC, elf.PT_LOAD, 500), "a:1", "unknown architecture EM_68K"},
		"it has no name":            {newELF(t, elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD, 500), "", "specify the name with --name"},
	} {
		t.Run(title, func(t *testing.T) {
			store := newStore(t)
			_, err := store.Load(t.Context(), writeProgram(t, c.program), LoadOptions{Name: c.name, Architecture: "amd64"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if images, err := store.List(); err != nil || len(images) > 0 {
				t.Errorf("the store has %v, %v", images, err)
			}
		})
	}
}

func TestTheProgramOfThisTestHasThisComputersArchitecture(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs of this computer are not for Linux")
	}
	self, err := os.Executable()
	must(t, err)
	if !isProgram(self) {
		t.Error("it is no program")
	}
	header, err := elf.Open(self)
	must(t, err)
	defer header.Close()
	if got := architectures[header.Machine]; got != runtime.GOARCH {
		t.Errorf("the architecture is %q", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeProgram(t *testing.T, program []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	must(t, os.WriteFile(path, program, 0o700))
	return path
}

// newELF returns a program with one segment.
func newELF(t *testing.T, machine elf.Machine, kind elf.Type, segment elf.ProgType, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(kind), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	must(t, binary.Write(&out, binary.LittleEndian, header))
	must(t, binary.Write(&out, binary.LittleEndian, elf.Prog64{Type: uint32(segment), Flags: uint32(elf.PF_R | elf.PF_X)}))
	for out.Len() < size {
		out.WriteByte(byte(out.Len()))
	}
	return out.Bytes()
}
