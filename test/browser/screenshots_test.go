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
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/screenshots.yaml
var screenshotManifests string

// steadyScript sets times and random names to fixed values.
//
//go:embed testdata/steady.js
var steadyScript string

var screenshotDir = flag.String("screenshots", "", "folder for the pictures of the documentation; empty: do not make them")

// The size of the pictures of the documentation, in light and in dark.
var window, darkWindow = size{"light", 1120, 900, false}, size{"dark", 1120, 900, true}

// TestScreenshots takes the pictures of the documentation: see make screenshots.
func TestScreenshots(t *testing.T) {
	if *screenshotDir == "" {
		t.Skip("-screenshots is not set: make screenshots makes the pictures")
	}
	h := startOwnHub(t)
	if err := h.createScreenshotObjects(); err != nil {
		t.Fatal(err)
	}
	p := signedIn(t, h)
	for _, c := range []struct {
		name, path string
		shows      []string
		open       func()
	}{
		{"console-fleet", "/fleet/fleet/laptop", []string{"LimitCovered"}, nil}, // the reason when no data plane is in flight
		{"console", "/", []string{"pull-requests", "lab-pull-secret"}, nil},
		{"console-pool", "/pools/ci/pull-requests", []string{"pr-4711", "Hibernating"}, nil},
		{"console-claims", "/pools/ci/release", []string{"1st", "2nd"}, nil},
		{"console-claim", "/pools/ci/pull-requests", []string{"pr-4711"}, func() {
			p.click("button", "Claim a cluster")
			p.enter("#claim-name", "pr-4720")
			p.enter("#claim-life", "4h")
		}},
		{"console-inventory", "/inventory", []string{"rack-c", "BrokenByConfiguration"}, nil},
		{"console-history", "/pools/ci/pull-requests?span=week", []string{"Claims in the following hour"}, func() {
			p.runActions("scrolling to the charts", chromedp.Evaluate(`document.getElementById("h").scrollIntoView()`, nil))
		}},
	} {
		for _, s := range []size{window, darkWindow} {
			p.setWindow(s)
			p.visit(c.path)
			p.waitForText(c.shows...)
			if c.open != nil {
				c.open()
			}
			p.endLiveStream()
			p.runActions("giving times and names fixed values", chromedp.Evaluate(steadyScript, nil))
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

// createScreenshotObjects creates the objects of the pictures and waits until they are ready.
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
			args = append(args, fmt.Sprintf("--timeout=%s", timeout))
		}
		if _, err := h.run("", args...); err != nil {
			return err
		}
	}
	if err := h.createHistory("ci", "pull-requests", time.Now()); err != nil {
		return err
	}
	cluster, err := h.run("", "kubectl", "get", "clusterclaim", "pr-4715", "-n", "ci", "-o", "jsonpath={.spec.namespace}")
	if err != nil {
		return err
	}
	_, err = h.run("", "cluster", "hibernate", cluster, "--wait")
	return err
}

// saveScreenshot writes what the window shows to a file.
func (t *tab) saveScreenshot(file string) error {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
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

// shrink reduces a picture to 256 colors, which halves its size: the most frequent ones, and one
// of each group of similar colors, so that small icons keep their color.
func shrink(raw []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	small := image.NewPaletted(full.Bounds(), choosePalette(countColors(full)))
	draw.Draw(small, small.Rect, full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func countColors(picture image.Image) map[color.RGBA]int {
	count := map[color.RGBA]int{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			r, g, b, a := picture.At(x, y).RGBA()
			count[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}]++
		}
	}
	return count
}

func choosePalette(count map[color.RGBA]int) color.Palette {
	const maxColors, mostFrequent = 256, 100
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var out color.Palette
	groups := map[[3]uint8]bool{}
	for i, c := range colors {
		group := [3]uint8{c.R >> 4, c.G >> 4, c.B >> 4}
		if len(out) < maxColors && (i < mostFrequent || !groups[group]) {
			out = append(out, c)
			groups[group] = true
		}
	}
	return out
}
