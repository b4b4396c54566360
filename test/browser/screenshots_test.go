//go:build browser

package browser

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/screenshots.yaml
var screenshotManifests string

// steadyScript gives times and random names fixed values.
//
//go:embed testdata/steady.js
var steadyScript string

var screenshotDir = flag.String("screenshots", "", "folder for the pictures of the documentation; empty: do not make them")

// The pictures of the documentation have one size, in light and in dark.
var window, darkWindow = size{"light", 1120, 900, false}, size{"dark", 1120, 900, true}

// TestScreenshots makes the pictures of the documentation: see make screenshots.
func TestScreenshots(t *testing.T) {
	if *screenshotDir == "" {
		t.Skip("-screenshots is not set: make screenshots makes the pictures")
	}
	h := own(t)
	if err := h.createScreenshotObjects(); err != nil {
		t.Fatal(err)
	}
	p := signedIn(t, h)
	for _, c := range []struct {
		name, path string
		shows      []string
		open       func()
	}{
		{"console-fleet", "/fleet/fleet/laptop", []string{"LimitCovered"}, nil}, // then nothing of it is on its way
		{"console", "/", []string{"pull-requests", "lab-pull-secret"}, nil},
		{"console-pool", "/pools/ci/pull-requests", []string{"pr-4711", "Hibernating"}, nil},
		{"console-claims", "/pools/ci/release", []string{"1st", "2nd"}, nil},
		{"console-claim", "/pools/ci/pull-requests", []string{"pr-4711"}, func() {
			p.click("button", "Claim a cluster")
			p.enter("#claim-name", "pr-4720")
			p.enter("#claim-life", "4h")
		}},
		{"console-inventory", "/inventory", []string{"rack-c", "BrokenByConfiguration"}, nil},
	} {
		for _, s := range []size{window, darkWindow} {
			p.look(s)
			p.visit(c.path)
			p.shows(c.shows...)
			if c.open != nil {
				c.open()
			}
			p.still()
			p.do("giving times and names fixed values", chromedp.Evaluate(steadyScript, nil))
			name := c.name + ".png"
			if s.dark {
				name = c.name + "-dark.png"
			}
			if err := p.saveScreenshot(filepath.Join(*screenshotDir, name)); err != nil {
				t.Errorf("saving %s: %v", name, err)
			}
		}
	}
}

// createScreenshotObjects creates what the pictures show, and waits for it.
func (h *hub) createScreenshotObjects() error {
	fleet, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "fleet.yaml"))
	if err != nil {
		return err
	}
	instances, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "instances.yaml"))
	if err != nil {
		return err
	}
	for _, manifests := range []string{string(fleet), string(instances), screenshotManifests} {
		if err := h.apply(manifests); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"kubectl", "wait", "clusterpool", "pull-requests", "-n", "ci", "--for=jsonpath={.status.size}=6"},
		{"claim", "create", "pull-requests", "-n", "ci", "--name", "pr-4711", "--lifetime", "8h", "--wait"},
		{"claim", "create", "pull-requests", "-n", "ci", "--name", "pr-4715", "--lifetime", "8h", "--wait"},
		{"claim", "create", "pull-requests", "-n", "ci", "--name", "nightly-upgrade", "--wait"},
		{"claim", "create", "release", "-n", "ci", "--name", "v2.4-rc1", "--wait"},
		{"claim", "create", "release", "-n", "ci", "--name", "v2.4-rc2", "--wait"},
		{"claim", "create", "release", "-n", "ci", "--name", "v2.5-alpha"},
		{"claim", "create", "release", "-n", "ci", "--name", "v2.5-beta"},
		{"kubectl", "wait", "clusterpool", "pull-requests", "-n", "ci", "--for=jsonpath={.status.standby}=4"},
	} {
		if args[0] == "kubectl" {
			args = append(args, fmt.Sprintf("--timeout=%s", patience))
		}
		if _, err := h.run("", args...); err != nil {
			return err
		}
	}
	cluster, err := h.run("", "kubectl", "get", "clusterclaim", "pr-4715", "-n", "ci", "-o", "jsonpath={.spec.namespace}")
	if err != nil {
		return err
	}
	_, err = h.run("", "cluster", "hibernate", cluster, "--wait")
	return err
}

// saveScreenshot writes what the window shows to a file.
func (p *tab) saveScreenshot(file string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	var raw []byte
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		raw, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err != nil {
		return err
	}
	if raw, err = shrink(raw); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}

// shrink reduces a picture to 256 colors, which halves its size. Similar colors count as one,
// so that the antialiasing of text does not displace the color of a small icon.
func shrink(raw []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	type similar [3]uint32
	pixels, exact := map[similar]int{}, map[similar]map[color.Color]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			c := full.At(x, y)
			r, g, b, _ := c.RGBA()
			key := similar{r >> 11, g >> 11, b >> 11}
			if pixels[key]++; exact[key] == nil {
				exact[key] = map[color.Color]int{}
			}
			exact[key][c]++
		}
	}
	var colors color.Palette
	for _, key := range slices.SortedFunc(maps.Keys(pixels), func(a, b similar) int { return cmp.Or(pixels[b]-pixels[a], slices.Compare(a[:], b[:])) }) {
		of := exact[key]
		colors = append(colors, slices.SortedFunc(maps.Keys(of), func(a, b color.Color) int {
			return cmp.Or(of[b]-of[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
		})[0])
	}
	small := image.NewPaletted(full.Bounds(), colors[:min(len(colors), 256)])
	draw.Draw(small, small.Rect, full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
