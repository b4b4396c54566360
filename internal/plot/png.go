package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pixelScale is the number of pixels for each unit of the layout.
const pixelScale = 2

// PNG returns the chart as a PNG file, in the light theme.
func (c Chart) PNG() ([]byte, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the font of charts: %w", err)
	}
	bold, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the font of charts: %w", err)
	}
	on := &pixels{
		image: image.NewRGBA(image.Rect(0, 0, fileWidth*pixelScale, int(c.height()*pixelScale))),
		fonts: map[bool]*opentype.Font{false: regular, true: bold},
	}
	c.draw(on)
	if on.err != nil {
		return nil, fmt.Errorf("drawing the texts of a chart: %w", on.err)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, on.image); err != nil {
		return nil, fmt.Errorf("encoding a chart: %w", err)
	}
	return out.Bytes(), nil
}

// pixels is a canvas of pixels. err is the first error.
type pixels struct {
	image *image.RGBA
	fonts map[bool]*opentype.Font
	err   error
}

func (p *pixels) polygons(c Color, parts [][]Point) {
	for _, part := range parts {
		p.polygon(c, part)
	}
}

func (p *pixels) polygon(c Color, points []Point) {
	// The rasterizer covers only the rectangle around the polygon: the whole image for each would be slow.
	low, high := points[0], points[0]
	for _, at := range points {
		low = Point{math.Min(low.X, at.X), math.Min(low.Y, at.Y)}
		high = Point{math.Max(high.X, at.X), math.Max(high.Y, at.Y)}
	}
	area := image.Rect(int(low.X*pixelScale), int(low.Y*pixelScale), int(math.Ceil(high.X*pixelScale)), int(math.Ceil(high.Y*pixelScale))).
		Intersect(p.image.Bounds())
	if area.Empty() {
		return
	}
	r := vector.NewRasterizer(area.Dx(), area.Dy())
	for i, at := range points {
		x, y := float32(at.X*pixelScale-float64(area.Min.X)), float32(at.Y*pixelScale-float64(area.Min.Y))
		if i == 0 {
			r.MoveTo(x, y)
			continue
		}
		r.LineTo(x, y)
	}
	r.ClosePath()
	r.Draw(p.image, area, newUniform(c), image.Point{})
}

func newUniform(c Color) *image.Uniform {
	v := light[c]
	return image.NewUniform(color.RGBA{v.r, v.g, v.b, 0xff})
}

// dash is the length of a dash and of the gap after it.
const dashLength, gapLength = 6.0, 4.0

func (p *pixels) line(c Color, points []Point, width float64, dashed bool) {
	along := 0.0
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		length := math.Abs(to.X-from.X) + math.Abs(to.Y-from.Y)
		if !dashed {
			p.segment(c, from, to, width)
			continue
		}
		for at := 0.0; at < length; {
			phase := math.Mod(along+at, dashLength+gapLength)
			next := math.Min(length, at+dashLength+gapLength-phase)
			if phase < dashLength {
				next = math.Min(length, at+dashLength-phase)
				p.segment(c, between(from, to, at/length), between(from, to, next/length), width)
			}
			at = next
		}
		along += length
	}
}

func between(a, b Point, share float64) Point {
	return Point{a.X + (b.X-a.X)*share, a.Y + (b.Y-a.Y)*share}
}

// segment draws a horizontal or vertical line as a rectangle.
func (p *pixels) segment(c Color, from, to Point, width float64) {
	half := width / 2
	left, right := math.Min(from.X, to.X)-half, math.Max(from.X, to.X)+half
	top, bottom := math.Min(from.Y, to.Y)-half, math.Max(from.Y, to.Y)+half
	area := image.Rect(int(math.Round(left*pixelScale)), int(math.Round(top*pixelScale)), int(math.Round(right*pixelScale)), int(math.Round(bottom*pixelScale)))
	draw.Draw(p.image, area, newUniform(c), image.Point{}, draw.Src)
}

func (p *pixels) text(at Point, a anchor, size float64, bold bool, text string) {
	face, err := opentype.NewFace(p.fonts[bold], &opentype.FaceOptions{Size: size * pixelScale, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		p.err = err
		return
	}
	d := font.Drawer{Dst: p.image, Src: newUniform(words), Face: face}
	x := at.X * pixelScale
	switch width := float64(d.MeasureString(text)) / 64; a {
	case middle:
		x -= width / 2
	case end:
		x -= width
	}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(at.Y * pixelScale * 64)}
	d.DrawString(text)
	if err := face.Close(); err != nil {
		p.err = err
	}
}
