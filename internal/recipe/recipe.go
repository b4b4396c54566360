package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// APIVersion is the version of the contract. recipe.yaml, each input and each answer contain it.
const APIVersion = "recipe.hotspare.io/v1"

// FileName is the name of the file that describes a recipe.
const FileName = "recipe.yaml"

// Verb is an operation on a cluster, and the name of the program that executes it.
type Verb string

// Verbs of the contract. Only Create and Destroy are required.
const (
	// Prepare prints a Prepared and creates nothing.
	Prepare Verb = "prepare"
	// Create creates the cluster, or continues its creation, and writes its kubeconfig to the state
	// folder.
	Create Verb = "create"
	// Destroy destroys all resources with the infraID. It succeeds if there are none.
	Destroy Verb = "destroy"
	// Observe prints an Observation.
	Observe Verb = "observe"
	// Start and Stop start and stop the machines of a cluster.
	Start Verb = "start"
	Stop  Verb = "stop"
	// Kubeconfig prints the cluster's kubeconfig. Tools whose kubeconfigs expire need it.
	Kubeconfig Verb = "kubeconfig"
	// Logs prints information for troubleshooting a cluster.
	Logs Verb = "logs"
	// LoadImage loads a container image into the cluster's nodes.
	LoadImage Verb = "load-image"
)

// Verbs lists all verbs in the order of a cluster's lifecycle.
var Verbs = []Verb{Prepare, Create, Observe, Kubeconfig, Stop, Start, LoadImage, Logs, Destroy}

// repeatableVerbs lists the verbs that may exit with 10, so that they are called again.
var repeatableVerbs = []Verb{Create, Destroy, Start, Stop, LoadImage}

// defaultTimeouts are the time limits for one run of a verb. A verb that needs more time exits with 10
// and is called again.
var defaultTimeouts = map[Verb]time.Duration{
	Prepare: time.Minute, Create: 30 * time.Minute, Destroy: 30 * time.Minute, Observe: time.Minute,
	Kubeconfig: time.Minute, Stop: 5 * time.Minute, Start: 5 * time.Minute, LoadImage: 5 * time.Minute, Logs: time.Minute,
}

// Recipe is a recipe, as loaded from its folder.
type Recipe struct {
	// Dir is the folder with the programs.
	Dir string
	// Name is a DNS label, and the name of the folder.
	Name string
	// Description is one sentence. The author chooses Version.
	Description, Version string
	// Parameters are the parameters that spec.platform.exec.with can set.
	Parameters Parameters
	// Needs are the requirements of one cluster on the machine that runs the verbs.
	Needs Needs
	// Definition is set for a recipe that LoadDefinition has loaded. It has no Dir.
	Definition *Definition

	verbs    map[Verb]bool
	timeouts map[Verb]time.Duration
}

// Needs are the requirements of one cluster on the machine that runs the verbs.
type Needs struct {
	// Programs are names of programs that must be in PATH.
	Programs []string
	// Memory and Disk are what one running cluster uses on this machine; zero if the cluster runs
	// elsewhere.
	Memory resource.Quantity
	Disk   resource.Quantity
}

// Has reports whether the recipe has a program for v.
func (r *Recipe) Has(v Verb) bool { return r.verbs[v] }

// CanHibernate reports whether the recipe can stop and start its clusters.
func (r *Recipe) CanHibernate() bool { return r.verbs[Stop] && r.verbs[Start] }

// Timeout returns the time limit for one run of v.
func (r *Recipe) Timeout(v Verb) time.Duration {
	if d := r.timeouts[v]; d > 0 {
		return d
	}
	return defaultTimeouts[v]
}

// document is the content of recipe.yaml.
type document struct {
	APIVersion  string          `json:"apiVersion"`
	Kind        string          `json:"kind"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Version     string          `json:"version"`
	With        *Schema         `json:"with,omitempty"`
	Timeouts    map[Verb]string `json:"timeouts,omitempty"`
	Needs       struct {
		Programs []string     `json:"programs,omitempty"`
		Memory   quantityText `json:"memory,omitempty"`
		Disk     quantityText `json:"disk,omitempty"`
	} `json:"needs,omitempty"`
}

// quantityText is a quantity before it is validated: a string or a number.
type quantityText string

// UnmarshalJSON accepts any scalar value.
func (q *quantityText) UnmarshalJSON(raw []byte) error {
	*q = quantityText(strings.Trim(string(raw), `"`))
	return nil
}

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// Load loads the recipe in dir. The error lists all faults of the recipe, each with its file, field,
// value and remedy.
func Load(dir string) (*Recipe, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("loading recipe %s: %w", dir, err)
	}
	d, errs, err := readDocument(dir)
	if err != nil {
		return nil, err
	}
	r, found := newRecipe(d, filepath.Base(dir))
	r.Dir = dir
	errs = append(errs, found...)
	errs = append(errs, r.findVerbs()...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("recipe %s is invalid:\n%w", dir, err)
	}
	return r, nil
}

// newRecipe returns the recipe in a folder of the given name, without its programs, and the faults of
// its document.
func newRecipe(d document, folder string) (*Recipe, []error) {
	r := &Recipe{Name: d.Name, Description: d.Description, Version: d.Version, verbs: map[Verb]bool{}, timeouts: map[Verb]time.Duration{}}
	errs := d.validate(folder)
	errs = append(errs, r.readTimeouts(d.Timeouts)...)
	errs = append(errs, r.readNeeds(d)...)
	parameters, err := NewParameters(d.With)
	if err != nil {
		errs = append(errs, err)
	}
	r.Parameters = parameters
	return r, errs
}

// readDocument reads recipe.yaml. Unknown and duplicate fields are faults, and do not prevent
// the validation of the others.
func readDocument(dir string) (d document, faults []error, err error) {
	path := filepath.Join(dir, FileName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, noDir := os.Stat(dir); noDir != nil {
			return d, nil, fmt.Errorf("loading recipe %s: the folder does not exist: specify the folder of a recipe", dir)
		}
		return d, nil, fmt.Errorf("folder %s is not a recipe, because it has no file %s: add the file, or create a recipe with hotspare recipe new NAME", dir, FileName)
	}
	if err != nil {
		return d, nil, fmt.Errorf("loading recipe %s: %w", dir, err)
	}
	d, faults, err = parseDocument(raw)
	if err != nil {
		return d, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return d, faults, nil
}

// parseDocument parses a recipe.yaml. Unknown and duplicate fields are faults.
func parseDocument(raw []byte) (d document, faults []error, err error) {
	strict := yaml.UnmarshalStrict(raw, &d)
	if strict == nil {
		return d, nil, nil
	}
	d = document{}
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return d, nil, strict
	}
	return d, []error{fmt.Errorf("%s: %s: correct or remove it", FileName, shortenDecodingError(strict))}, nil
}

// shortenDecodingError removes the names of decoders from an error.
func shortenDecodingError(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ", "yaml: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

func (d *document) validate(folder string) (errs []error) {
	if d.APIVersion != APIVersion || d.Kind != "Recipe" {
		errs = append(errs, fmt.Errorf("%s: apiVersion is %q and kind is %q: set them to %s and Recipe", FileName, d.APIVersion, d.Kind, APIVersion))
	}
	if err := validateName(d.Name); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", FileName, err))
	} else if d.Name != folder {
		errs = append(errs, fmt.Errorf("%s: name %q differs from the name of the folder, %q: use the same name, because pools refer to a recipe by its folder",
			FileName, d.Name, folder))
	}
	return errs
}

// validateName returns an error if name cannot be the name of a recipe: a DNS label.
func validateName(name string) error {
	if len(validation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not a valid name of a recipe: use at most 63 lowercase letters, digits and hyphens, and begin and end with a letter or a digit", name)
}

func (r *Recipe) readTimeouts(given map[Verb]string) (errs []error) {
	for _, v := range slices.Sorted(maps.Keys(given)) {
		switch d, err := time.ParseDuration(given[v]); {
		case !slices.Contains(Verbs, v):
			errs = append(errs, fmt.Errorf("%s: timeouts: %q is not a verb: use one of %s", FileName, v, joinNames(Verbs)))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: timeouts.%s: %q is not a duration: use a value such as 90s or 20m", FileName, v, given[v]))
		case d < time.Second:
			errs = append(errs, fmt.Errorf("%s: timeouts.%s: %s is too short: use at least 1s", FileName, v, d))
		default:
			r.timeouts[v] = d
		}
	}
	return errs
}

func (r *Recipe) readNeeds(d document) (errs []error) {
	r.Needs.Programs = d.Needs.Programs
	for _, p := range d.Needs.Programs {
		if !programName.MatchString(p) {
			errs = append(errs, fmt.Errorf("%s: needs.programs: %q is not the name of a program: remove folders and arguments", FileName, p))
		}
	}
	for _, q := range []struct {
		field string
		text  quantityText
		into  *resource.Quantity
	}{{"memory", d.Needs.Memory, &r.Needs.Memory}, {"disk", d.Needs.Disk, &r.Needs.Disk}} {
		if q.text == "" {
			continue
		}
		parsed, err := resource.ParseQuantity(string(q.text))
		if err != nil || parsed.Sign() < 0 {
			errs = append(errs, fmt.Errorf("%s: needs.%s: %q is not a quantity: use a value such as 512Mi or 4Gi", FileName, q.field, q.text))
			continue
		}
		*q.into = parsed
	}
	return errs
}

// findVerbs finds the programs in the folder.
func (r *Recipe) findVerbs() (errs []error) {
	found := map[Verb]bool{} // also those that cannot be executed
	for _, v := range Verbs {
		path := filepath.Join(r.Dir, string(v))
		info, err := os.Stat(path)
		if found[v] = !errors.Is(err, fs.ErrNotExist); !found[v] {
			continue
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case !info.Mode().IsRegular():
			errs = append(errs, fmt.Errorf("program %s is not a regular file: replace it by a program, or delete it", v))
		case info.Mode().Perm()&0o111 == 0:
			errs = append(errs, fmt.Errorf("program %s is not executable: run chmod +x %s", v, path))
		case interpreterEndsWithCR(path):
			errs = append(errs, fmt.Errorf("the first line of program %s ends with a carriage return, which its interpreter would receive: run sed -i 's/\\r$//' %s",
				v, resolveLinks(path)))
		default:
			r.verbs[v] = true
		}
	}
	return append(errs, checkVerbs(found)...)
}

// interpreterEndsWithCR reports whether the line that names the interpreter of a program ends with a carriage
// return, as editors on Windows write it. A program that cannot be read now has another fault later.
func interpreterEndsWithCR(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	first := make([]byte, maxInterpreterLine)
	n, _ := io.ReadFull(f, first)
	line, _, _ := bytes.Cut(first[:n], []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("\r"))
}

// resolveLinks returns the file that a path names, or the path itself.
func resolveLinks(path string) string {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		return file
	}
	return path
}

// maxInterpreterLine is how much of the first line the kernel reads, in bytes.
const maxInterpreterLine = 256

// checkVerbs returns the faults of a set of programs.
func checkVerbs(found map[Verb]bool) (errs []error) {
	for _, v := range []Verb{Create, Destroy} {
		if !found[v] {
			errs = append(errs, fmt.Errorf("program %s is missing: each recipe needs %s and %s", v, Create, Destroy))
		}
	}
	if found[Start] != found[Stop] {
		errs = append(errs, fmt.Errorf("the recipe has only one of the programs %s and %s: add the other one, or delete it if its clusters cannot hibernate", Start, Stop))
	}
	if found[Stop] && !found[Observe] {
		errs = append(errs, fmt.Errorf("program %s is missing: a recipe with %s needs it, because hotspare observes whether the machines have stopped", Observe, Stop))
	}
	return errs
}

// Missing returns the programs that are not in PATH.
func (n Needs) Missing() []string {
	var out []string
	for _, p := range n.Programs {
		if _, err := exec.LookPath(p); err != nil {
			out = append(out, p)
		}
	}
	return out
}
