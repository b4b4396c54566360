// Command sbom prints the components of a Go program as a CycloneDX bill of materials: the modules
// that the linker has recorded in it, with their checksums.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(out io.Writer, program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading what %s is made of: %w", program, err)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(newBill(filepath.Base(program), version, info))
}

// bill is a CycloneDX 1.5 BOM, with only the fields that are used here.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// newBill lists the modules of a program in order, and the toolchain, because the program contains
// its standard library.
func newBill(name, version string, info *debug.BuildInfo) bill {
	b := bill{Format: "CycloneDX", SpecVersion: "1.5", Version: 1}
	b.Metadata.Component = component{
		Type: "application", Ref: name, Name: name, Version: version,
		PURL: packageURL(info.Main.Path, version),
	}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = []component{{Type: "library", Ref: "std", Name: "std", Version: std, PURL: packageURL("std", std)}}
	for _, m := range info.Deps {
		b.Components = append(b.Components, newComponent(m))
	}
	return b
}

// newComponent returns the component for a module, or for its replacement.
func newComponent(m *debug.Module) component {
	was := m
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: packageURL(m.Path, m.Version), Ref: packageURL(m.Path, m.Version)}
	if m != was && m.Path != was.Path {
		c.Properties = []property{{"go:replaces", was.Path}}
	}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		// The checksum is the SHA-256 of the module's list of files and their hashes.
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
		}
	}
	return c
}

func packageURL(module, version string) string {
	if version == "" {
		return "pkg:golang/" + module
	}
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
}
