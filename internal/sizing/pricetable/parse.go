package pricetable

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/fault"
)

// platformNames are the platforms whose machines have instance types with list prices.
var platformNames = []string{"aws", "azure", "gcp"}

// tableFile is a table as its text has it. All values are texts, so that each can be quoted if it is wrong.
type tableFile struct {
	Date      string                  `json:"date"`
	Currency  string                  `json:"currency"`
	Platforms map[string]platformFile `json:"platforms"`
}

type platformFile struct {
	ControlPlane roleFile          `json:"controlPlane"`
	Compute      roleFile          `json:"compute"`
	Machines     map[string]amount `json:"machines"`
}

type roleFile struct {
	Type string  `json:"type"`
	Disk *amount `json:"disk"`
}

// An amount is a number as it is written, with quotes or without.
type amount string

// Parse parses a table. Everything may be left out of it. An error is fault.Denied, and names the field, the value and
// the remedy. With an error, the Table has nothing but the Currency of the text, if that can be read.
func Parse(raw []byte) (Table, error) {
	var f tableFile
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return Table{Currency: (&parser{}).parseCurrency(f.Currency)}, describeDecodeError(err)
	}
	var p parser
	out := p.parseTable(f)
	if err := p.deniedError(); err != nil {
		return Table{Currency: out.Currency}, err
	}
	return out, nil
}

// describeDecodeError returns why a text is not a table.
func describeDecodeError(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		if mismatch.Field == "" {
			return fault.NewDenied("it is of kind %s: write a mapping with the keys date, currency and platforms", mismatch.Value)
		}
		return fault.NewDenied("%s is of kind %s, which does not fit: write it as in the default table, which the documentation shows",
			mismatch.Field, mismatch.Value)
	}
	if _, key, unknown := strings.Cut(err.Error(), "json: unknown field "); unknown {
		return fault.NewDenied("%s is not a key of the table: use date, currency and platforms; in a platform controlPlane, compute and machines;"+
			" and in controlPlane and compute type and disk", key)
	}
	return fault.NewDenied("it is not valid YAML: %s", strings.TrimPrefix(strings.TrimPrefix(fault.OneLine(err), "error converting YAML to JSON: "), "yaml: "))
}

// parser collects what is wrong.
type parser struct{ problems []string }

func (p *parser) reject(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// deniedError returns the first problems, and how many more there are, as one error; nil if there are none.
func (p *parser) deniedError() error {
	const most = 3
	shown := p.problems
	if more := len(shown) - most; more > 0 {
		shown = append(slices.Clone(shown[:most]), fmt.Sprintf("and %d more", more))
	}
	if len(shown) == 0 {
		return nil
	}
	return fault.NewDenied("%s", strings.Join(shown, "; "))
}

// A month of prices, and the code of a currency.
var (
	month    = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

func (p *parser) parseTable(f tableFile) Table {
	out := Table{Date: f.Date, Currency: p.parseCurrency(f.Currency), Platforms: map[string]Platform{}}
	if f.Date != "" && !month.MatchString(f.Date) {
		p.reject(`date %q is not a month: write one such as "2026-01", or remove it`, f.Date)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Platforms)) {
		if err := CheckPlatform(name); err != nil {
			p.reject("platforms.%s: %v, and remove it from the table", name, err)
			continue
		}
		out.Platforms[name] = p.parsePlatform("platforms."+name, f.Platforms[name])
	}
	return out
}

// parseCurrency returns "" for a currency that is not set, or not valid.
func (p *parser) parseCurrency(text string) string {
	if text != "" && !currency.MatchString(text) {
		p.reject("currency %q is not the code of a currency: write three capital letters, such as EUR", text)
		return ""
	}
	return text
}

func (p *parser) parsePlatform(path string, f platformFile) Platform {
	out := Platform{
		ControlPlane: p.parseRole(path+".controlPlane", f.ControlPlane), Compute: p.parseRole(path+".compute", f.Compute),
		Machines: map[string]float64{},
	}
	for _, name := range slices.Sorted(maps.Keys(f.Machines)) {
		out.Machines[name] = p.parsePrice(fmt.Sprintf("%s.machines: the price of %s,", path, name), f.Machines[name], smallestPrice)
	}
	return out
}

func (p *parser) parseRole(path string, f roleFile) Role {
	out := Role{Type: f.Type}
	if f.Disk != nil {
		price := p.parsePrice(path+".disk", *f.Disk, 0)
		out.Disk = &price
	}
	return out
}

// The limits of the price of a machine. The status of a PoolPolicy has six digits after the point.
const (
	smallestPrice = 0.000001
	largestPrice  = 1_000_000
)

// parsePrice parses a price of at least a number. NaN, which YAML has, is not one.
func (p *parser) parsePrice(what string, text amount, least float64) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || !(n >= least && n <= largestPrice) {
		p.reject("%s %q is not a number from %s to %d: write the price of one hour, such as 0.192", what, text,
			strconv.FormatFloat(least, 'f', -1, 64), largestPrice)
		return 0
	}
	return n
}
