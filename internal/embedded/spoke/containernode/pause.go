package containernode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
)

// pauseImage is the image of the container that holds the namespaces of a pod. The node makes it,
// so that it needs no registry.
const pauseImage = "hotspare.local/pause:1"

// pauseCode is, by architecture, machine code that ignores the end of child processes, so that the
// kernel removes them, and then waits forever for signals.
var pauseCode = map[string][]byte{
	"amd64": {
		0x6a, 0x00, // push 0: the mask of a struct kernel_sigaction
		0x6a, 0x00, // push 0: its restorer
		0x6a, 0x00, // push 0: its flags
		0x6a, 0x01, // push 1: its handler, SIG_IGN
		0xbf, 0x11, 0x00, 0x00, 0x00, // mov edi, SIGCHLD
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0x31, 0xd2, // xor edx, edx
		0x41, 0xba, 0x08, 0x00, 0x00, 0x00, // mov r10d, 8
		0xb8, 0x0d, 0x00, 0x00, 0x00, // mov eax, rt_sigaction
		0x0f, 0x05, // syscall
		0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to mov eax, pause
	},
	"arm64": words(
		0xa9bf7fff, // stp xzr, xzr, [sp, #-16]!: the restorer and the mask of a struct kernel_sigaction
		0xd2800024, // mov x4, SIG_IGN
		0xa9bf7fe4, // stp x4, xzr, [sp, #-16]!: its handler and flags
		0xd2800220, // mov x0, SIGCHLD
		0x910003e1, // mov x1, sp
		0xd2800002, // mov x2, 0
		0xd2800103, // mov x3, 8
		0xd28010c8, // mov x8, rt_sigaction
		0xd4000001, // svc 0
		0xd2800000, // mov x0, 0
		0xd2800001, // mov x1, 0
		0xd2800002, // mov x2, 0
		0xd2800003, // mov x3, 0
		0xd2800928, // mov x8, ppoll
		0xd4000001, // svc 0
		0x17fffffa, // b to mov x0, 0
	),
}

// elfMachine is the number of an architecture in an ELF header.
var elfMachine = map[string]uint16{"amd64": 62, "arm64": 183}

func words(code ...uint32) []byte {
	var out []byte
	for _, w := range code {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// newPauseProgram returns an executable for an architecture.
func newPauseProgram(architecture string) ([]byte, error) {
	code, ok := pauseCode[architecture]
	if !ok {
		return nil, fmt.Errorf("containers cannot run on the architecture %s: only on amd64 and arm64", architecture)
	}
	const headers, base = 64 + 56, 0x400000
	size := uint64(headers + len(code))
	order := binary.LittleEndian
	elf := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0} // 64 bits, little endian
	elf = order.AppendUint16(elf, 2)                                       // executable
	elf = order.AppendUint16(elf, elfMachine[architecture])
	elf = order.AppendUint32(elf, 1)
	elf = order.AppendUint64(elf, base+headers) // entry point
	elf = order.AppendUint64(elf, 64)           // program headers
	elf = order.AppendUint64(elf, 0)            // no section headers
	elf = order.AppendUint32(elf, 0)
	for _, n := range []uint16{64, 56, 1, 64, 0, 0} { // sizes and counts of headers
		elf = order.AppendUint16(elf, n)
	}
	elf = order.AppendUint32(elf, 1) // load
	elf = order.AppendUint32(elf, 5) // readable and executable
	for _, n := range []uint64{0, base, base, size, size, 0x1000} {
		elf = order.AppendUint64(elf, n)
	}
	return append(elf, code...), nil
}

// newPauseArchive returns an archive of pauseImage for this computer, in the format of
// "docker save", which all versions of containerd import.
func newPauseArchive() ([]byte, error) {
	program, err := newPauseProgram(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	layer, err := newTar(file{"pause", program, 0o755})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pause"}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": digest(config) + ".json", "RepoTags": []string{pauseImage}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return newTar(file{digest(config) + ".json", config, 0o644}, file{"layer.tar", layer, 0o644}, file{"manifest.json", manifest, 0o644})
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// file is a file of an archive.
type file struct {
	name    string
	content []byte
	mode    int64
}

func newTar(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
