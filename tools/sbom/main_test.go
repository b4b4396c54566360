package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAModuleIsListedAsItWasLinked(t *testing.T) {
	for name, c := range map[string]struct {
		module debug.Module
		want   component
	}{
		"as it is": {
			debug.Module{Path: "example.com/a", Version: "v1.2.3+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			component{
				Type: "library", Name: "example.com/a", Version: "v1.2.3+incompatible",
				PURL: "pkg:golang/example.com/a@v1.2.3%2Bincompatible", Ref: "pkg:golang/example.com/a@v1.2.3%2Bincompatible",
				Hashes: []hash{{"SHA-256", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}},
			},
		},
		"replaced by another": {
			debug.Module{Path: "example.com/a", Version: "v0.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.0"}},
			component{
				Type: "library", Name: "example.com/fork", Version: "v2.0.0", PURL: "pkg:golang/example.com/fork@v2.0.0",
				Ref: "pkg:golang/example.com/fork@v2.0.0", Properties: []property{{"go:replaces", "example.com/a"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, newComponent(&c.module)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABillListsTheModulesInTheirOrder(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/main"},
		Deps:     []*debug.Module{{Path: "example.com/a", Version: "v1.0.0"}, {Path: "example.com/b", Version: "v2.0.0"}},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "long"}},
	}
	b := newBill("hotspare", "v9", info)
	var got []string
	for _, c := range b.Components {
		got = append(got, c.PURL)
	}
	if diff := cmp.Diff([]string{"pkg:golang/std@1.26.0", "pkg:golang/example.com/a@v1.0.0", "pkg:golang/example.com/b@v2.0.0"}, got); diff != "" {
		t.Error(diff)
	}
	want := component{
		Type: "application", Ref: "hotspare", Name: "hotspare", Version: "v9", PURL: "pkg:golang/example.com/main@v9",
		Properties: []property{{"go:GOOS", "linux"}},
	}
	if diff := cmp.Diff(want, b.Metadata.Component); diff != "" {
		t.Error(diff)
	}
}

// A test is a program, too, though none of its modules are recorded in it.
func TestABillOfThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(&out, self, "v9"); err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Version != "v9" || b.Components[0].Name != "std" {
		t.Errorf("got %s", out.String())
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	if err := run(&bytes.Buffer{}, "main.go", "v9"); err == nil {
		t.Error("it was accepted")
	}
}
