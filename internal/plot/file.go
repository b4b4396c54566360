package plot

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Format is a format of files.
type Format string

// The formats.
const (
	SVGFile Format = "svg"
	PNGFile Format = "png"
)

// FormatOf returns the format that the extension of a file's name stands for.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), ".")); Format(ext) {
	case SVGFile, PNGFile:
		return Format(ext), nil
	default:
		return "", fmt.Errorf("%q is not the name of an SVG or PNG file: use one that ends in .svg or .png", path)
	}
}

// Encode returns the chart as a file.
func (c Chart) Encode(f Format) ([]byte, error) {
	if f == PNGFile {
		return c.PNG()
	}
	return c.SVG(), nil
}
