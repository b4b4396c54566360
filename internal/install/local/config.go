package local

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// Defaults for an install-config that does not set these values; as in the schema of
// hivev1.LocalPlatform.
const (
	defaultWorkers             = 1
	maxWorkers                 = 20
	defaultCertificateDuration = 24 * time.Hour
	minCertificateDuration     = time.Minute
	// Lower ports are reserved for root.
	minAPIPort = 1024
	maxAPIPort = 65535
)

// config is the part of an install-config.yaml that the installer uses.
type config struct {
	name                string
	baseDomain          string
	workers             int
	certificateDuration time.Duration
	apiPort             int // 0: choose a free port
	containers          hivev1.LocalContainers
	// images are the images that workers pull before they are ready for the first time.
	images []string
}

// parseInstallConfig parses an install-config. It ignores sections that the local platform does not
// use (networking, compute …), and those that parseRegistryAccess parses. The error is fault.Denied and names the path, the value
// and the remedy.
func parseInstallConfig(raw []byte) (config, error) {
	var document map[string]any
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return config{}, fault.NewDenied("install-config.yaml is not a YAML mapping: %w", err)
	}
	var p parser
	c := config{
		name:                p.parseName(document),
		baseDomain:          p.parseBaseDomain(document),
		workers:             defaultWorkers,
		certificateDuration: defaultCertificateDuration,
		containers:          hivev1.LocalContainersAuto,
	}
	p.parsePlatform(document, &c)
	if c.containers == hivev1.LocalContainersAlways && c.workers == 0 {
		p.addInvalid(field.NewPath("platform", "local", "workers"), c.workers, "must be at least 1 if platform.local.containers is Always: workers run the containers")
	}
	if err := p.errs.ToAggregate(); err != nil {
		return config{}, fault.NewDenied("install-config.yaml: %w", err)
	}
	return c, nil
}

// parser collects problems.
type parser struct {
	errs field.ErrorList
}

func (p *parser) addInvalid(path *field.Path, value any, remedy string) {
	p.errs = append(p.errs, field.Invalid(path, value, remedy))
}

func (p *parser) parseName(document map[string]any) string {
	path := field.NewPath("metadata", "name")
	metadata, _ := document["metadata"].(map[string]any)
	return p.parseText(path, metadata["name"], "the cluster's name", validation.IsDNS1123Label)
}

func (p *parser) parseBaseDomain(document map[string]any) string {
	return p.parseText(field.NewPath("baseDomain"), document["baseDomain"], "a domain such as example.com", validation.IsDNS1123Subdomain)
}

func (p *parser) parseText(path *field.Path, value any, what string, check func(string) []string) string {
	text, ok := value.(string)
	switch {
	case value == nil:
		p.errs = append(p.errs, field.Required(path, "set it to "+what))
	case !ok:
		p.addInvalid(path, value, "must be a string: "+what)
	default:
		for _, remedy := range check(text) {
			p.addInvalid(path, text, remedy)
		}
	}
	return text
}

// localPlatformFields are the fields of platform.local.
const localPlatformFields = "apiPort, certificateDuration, containers, images and workers"

// parsePlatform parses platform.local. If the section is absent, or is that of another platform,
// the defaults stay.
func (p *parser) parsePlatform(document map[string]any, c *config) {
	platform, _ := document["platform"].(map[string]any)
	if platform["local"] == nil {
		return
	}
	path := field.NewPath("platform", "local")
	local, ok := platform["local"].(map[string]any)
	if !ok {
		p.addInvalid(path, platform["local"], "must be a mapping with "+localPlatformFields+", or {}")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(local)) {
		value := local[key]
		switch key {
		case "workers":
			c.workers = p.parseWorkers(path.Child(key), value)
		case "certificateDuration":
			c.certificateDuration = p.parseCertificateDuration(path.Child(key), value)
		case "containers":
			c.containers = p.parseContainers(path.Child(key), value)
		case "images":
			c.images = p.parseImages(path.Child(key), value)
		case "apiPort":
			c.apiPort = p.parseAPIPort(path.Child(key), value)
		default:
			p.addInvalid(path.Child(key), value, "unknown field: remove it; known fields are "+localPlatformFields)
		}
	}
}

func (p *parser) parseWorkers(path *field.Path, value any) int {
	n, ok := parseWholeNumber(value, 0, maxWorkers)
	if !ok {
		p.addInvalid(path, value, fmt.Sprintf("must be a number from 0 to %d", maxWorkers))
	}
	return n
}

func (p *parser) parseContainers(path *field.Path, value any) hivev1.LocalContainers {
	known := []hivev1.LocalContainers{hivev1.LocalContainersAlways, hivev1.LocalContainersAuto, hivev1.LocalContainersNever}
	text, _ := value.(string)
	if !slices.Contains(known, hivev1.LocalContainers(text)) {
		p.errs = append(p.errs, field.NotSupported(path, value, known))
	}
	return hivev1.LocalContainers(text)
}

// parseImages parses a list of names of images.
func (p *parser) parseImages(path *field.Path, value any) []string {
	list, ok := value.([]any)
	if !ok && value != nil {
		p.addInvalid(path, value, "must be a list of names of images")
	}
	var images []string
	for i, item := range list {
		name, _ := item.(string)
		if _, err := reference.ParseNormalizedNamed(name); err != nil {
			p.addInvalid(path.Index(i), item, "must be the name of an image, such as busybox:1.36")
		}
		images = append(images, name)
	}
	return images
}

func (p *parser) parseAPIPort(path *field.Path, value any) int {
	n, ok := parseWholeNumber(value, minAPIPort, maxAPIPort)
	if !ok {
		p.addInvalid(path, value, fmt.Sprintf("must be a number from %d to %d; remove it to use a free port", minAPIPort, maxAPIPort))
	}
	return n
}

// parseWholeNumber returns an integer within bounds; otherwise 0 and false.
func parseWholeNumber(value any, least, most float64) (int, bool) {
	n, ok := value.(float64)
	if !ok || n != math.Trunc(n) || n < least || n > most {
		return 0, false
	}
	return int(n), true
}

func (p *parser) parseCertificateDuration(path *field.Path, value any) time.Duration {
	text, ok := value.(string)
	if !ok {
		p.addInvalid(path, value, "must be a string such as 24h or 90m")
		return 0
	}
	if text = strings.TrimSpace(text); text == "" {
		return defaultCertificateDuration
	}
	d, err := hivev1.Duration(text).Parse()
	if err != nil {
		p.addInvalid(path, text, err.Error())
		return 0
	}
	if d < minCertificateDuration {
		p.addInvalid(path, text, "must be at least 1m, because nodes need time to renew their certificates")
	}
	return d
}
