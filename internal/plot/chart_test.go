package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// newDay returns a chart of a day with all kinds of layers.
func newDay() Chart {
	const n = 96
	values := func(f func(i int) float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	return Chart{
		Title: "Pool team/<ci>", Description: "A & B", Axis: Axis{Begin: monday, Step: 15 * time.Minute, Steps: n},
		Panels: []Panel{
			{Title: "Clusters", Layers: []Layer{
				{Name: "running", Kind: Stack, Color: Running, Values: values(func(int) float64 { return 2 })},
				{Name: "hibernating", Kind: Stack, Color: Hibernating, Values: values(func(i int) float64 { return float64(i % 5) })},
				{Name: "wanted", Kind: Dashed, Color: Wanted, Values: values(func(i int) float64 { return float64(i / 30) })},
			}},
			{Title: "Claims", Layers: []Layer{
				{Name: "band", Kind: Band, Color: Range, Values: values(func(int) float64 { return 4 }), Low: values(func(int) float64 { return 1 })},
				{Name: "claims", Kind: Bars, Color: Claims, Values: values(func(i int) float64 { return float64(i % 3) })},
				{Name: "expected", Kind: Line, Color: Expected, Values: values(func(int) float64 { return 1.5 })},
			}},
		},
	}
}

func TestAChartIsReadableByPrograms(t *testing.T) {
	raw := newDay().SVG()
	d := xml.NewDecoder(bytes.NewReader(raw))
	seen := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			seen[e.Name.Local]++
		}
	}
	if seen["title"] != 1 || seen["desc"] != 1 || seen["text"] < 20 || seen["path"] < 10 {
		t.Errorf("it has %v", seen)
	}
	for _, word := range []string{"prefers-color-scheme: dark", `role="img"`, "Pool team/&lt;ci&gt;", "A &amp; B"} {
		if !strings.Contains(string(raw), word) {
			t.Errorf("it lacks %q", word)
		}
	}
	if !bytes.Equal(raw, newDay().SVG()) {
		t.Error("the same chart is drawn differently")
	}
}

// rgbAt returns the color of a place in the layout.
func rgbAt(img image.Image, x, y float64) rgb {
	c, ok := color.RGBAModel.Convert(img.At(int(x*pixelScale), int(y*pixelScale))).(color.RGBA)
	if !ok {
		return rgb{}
	}
	return rgb{c.R, c.G, c.B}
}

func TestAPNGHasTheSameShapes(t *testing.T) {
	c := newDay()
	raw, err := c.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if want := image.Rect(0, 0, 1920, int(c.height()*2)); img.Bounds() != want {
		t.Errorf("it is %v, want %v", img.Bounds(), want)
	}
	// The axis ends at 8. Two clusters run all day, and four hibernate in the last step.
	scale := c.Panels[0].Scale()
	most := scale[len(scale)-1]
	at := func(step int, value float64) (float64, float64) {
		return plotLeft + (float64(step)+0.5)*plotWidth/96, titleHeight + headHeight + plotHeight*(1-value/most)
	}
	for name, p := range map[string]struct {
		step  int
		value float64
		want  Color
	}{
		"running":     {4, 1.2, Running},
		"hibernating": {4, 4.4, Hibernating},
		"above":       {0, 4.4, background},
	} {
		if got := rgbAt(img, first(at(p.step, p.value)), second(at(p.step, p.value))); got != light[p.want] {
			t.Errorf("%s: %s, want %s", name, got, light[p.want])
		}
	}
	dark := 0
	for x := plotLeft; x < 300; x += 0.5 {
		if rgbAt(img, x, 24) != light[background] {
			dark++
		}
	}
	if dark < 20 {
		t.Errorf("the title has only %d dark pixels", dark)
	}
}

func first(a, _ float64) float64  { return a }
func second(_, b float64) float64 { return b }

func TestUnknownValuesAreGaps(t *testing.T) {
	nan := math.NaN()
	p := Panel{Layers: []Layer{
		{Kind: Stack, Values: []float64{1, 1, nan, 2}},
		{Kind: Line, Values: []float64{nan, 3, 3, nan}},
		{Kind: Bars, Values: []float64{0, 1, nan, 0}},
	}}
	var got []string
	for _, s := range p.Shapes(4, 4, 4) {
		got = append(got, PathData(s.Parts, s.Kind != Line))
	}
	want := []string{"M0 2.67H2V4H0ZM3 1.33H4V4H3Z", "M1 0H3", "M1.1 4V2.67H1.9V4Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever the values are, shapes stay in their box, and the axis reaches the largest value.
func TestShapesStayInTheirBox(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		n := r.IntN(40)
		var p Panel
		for range r.IntN(5) {
			l := Layer{Kind: Kind(r.IntN(5)), Values: make([]float64, n), Low: make([]float64, n)}
			for i := range n {
				l.Values[i] = []float64{0, r.Float64(), 1e6 * r.Float64(), math.NaN(), math.Inf(1), -r.Float64(), 3}[r.IntN(7)]
			}
			p.Layers = append(p.Layers, l)
		}
		scale := p.Scale()
		if last := scale[len(scale)-1]; last < p.most() || len(scale) < 2 || len(scale) > 6 {
			t.Fatalf("the axis %v does not reach %g", scale, p.most())
		}
		for _, s := range p.Shapes(100, 50, n) {
			for _, part := range s.Parts {
				for _, at := range part {
					if !(at.X >= 0 && at.X <= 100.001 && at.Y >= 0 && at.Y <= 50) {
						t.Fatalf("%v of %+v", at, p)
					}
				}
			}
		}
	}
}

func TestTheAxisHasRoundNumbers(t *testing.T) {
	for most, want := range map[float64]string{0: "[0 1]", 1: "[0 1]", 2: "[0 1 2]", 3.2: "[0 1 2 3 4]", 7: "[0 2 4 6 8]", 13: "[0 5 10 15]", 140: "[0 50 100 150]"} {
		if got := fmt.Sprint(Panel{Layers: []Layer{{Values: []float64{most}}}}.Scale()); got != want {
			t.Errorf("%g: %s, want %s", most, got, want)
		}
	}
}

func TestTimesAreLabeledByTheClockOfTheZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	santiago, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		axis Axis
		want string
	}{
		"a day that begins at one":    {Axis{time.Date(2026, 9, 4, 4, 0, 0, 0, time.UTC), time.Hour, 168, santiago}, "Fri 4,Sat 5,Sun 6,Mon 7,Tue 8,Wed 9,Thu 10,Fri 11"},
		"an hour that is skipped":     {Axis{time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), 15 * time.Minute, 20, berlin}, "01:00 03:00 04:00 05:00 06:00"},
		"a day":                       {Axis{monday.Add(90 * time.Minute), 15 * time.Minute, 96, nil}, "03:00 06:00 09:00 12:00 15:00 18:00 21:00 00:00"},
		"a week":                      {Axis{monday.Add(5 * time.Hour), time.Hour, 168, nil}, "Tue 3,Wed 4,Thu 5,Fri 6,Sat 7,Sun 8,Mon 9"},
		"a day on which clocks go on": {Axis{time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), time.Hour, 23, berlin}, "00:00 03:00 06:00 09:00 12:00 15:00 18:00 21:00"},
		"nothing":                     {Axis{}, ""},
	} {
		var got []string
		for _, tick := range tc.axis.Ticks(8) {
			got = append(got, tick.Text)
		}
		sep := " "
		if strings.Contains(tc.want, ",") {
			sep = ","
		}
		if text := strings.Join(got, sep); text != tc.want {
			t.Errorf("%s: %s, want %s", name, text, tc.want)
		}
	}
	if got := (Axis{monday, time.Hour, 24 * 800, nil}).Ticks(5); len(got) != 5 || got[0].Text != "2 Mar 2026" {
		t.Errorf("two years: %v", got)
	}
}

func TestAnEmptyChartIsDrawn(t *testing.T) {
	for _, c := range []Chart{{}, {Panels: []Panel{{}}}, {Panels: []Panel{{Layers: []Layer{{Kind: Stack}}}}}} {
		if _, err := c.PNG(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(c.SVG()), "</svg>") {
			t.Error("no SVG")
		}
	}
}

func TestTheExtensionSaysTheFormat(t *testing.T) {
	for path, want := range map[string]Format{"a.svg": SVGFile, "b/c.PNG": PNGFile, "d.jpg": "", "svg": "", "": "", "e.svg.gz": ""} {
		got, err := FormatOf(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), ".png") {
			t.Errorf("%q: the error lacks the remedy: %v", path, err)
		}
	}
}
