package recipe

import (
	"errors"
	"fmt"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// APIVersion is the version of the contract. It stands in recipe.yaml, in each input and in each answer.
const APIVersion = "recipe.hotspare.io/v1"

// FileName is the file that describes a recipe, in its folder.
const FileName = "recipe.yaml"

// Verb is the name of a program in a recipe's folder.
type Verb string

// Verbs that a recipe may have. Only Create and Destroy are required.
const (
	// Prepare prints a Prepared and creates nothing.
	Prepare Verb = "prepare"
	// Create creates the cluster, or continues to, and leaves its kubeconfig in the state folder.
	Create Verb = "create"
	// Destroy destroys whatever carries the infraID. It succeeds if nothing does.
	Destroy Verb = "destroy"
	// Observe prints an Observation.
	Observe Verb = "observe"
	// Start and Stop start and stop the machines of a cluster.
	Start Verb = "start"
	Stop  Verb = "stop"
	// Kubeconfig prints the cluster's kubeconfig, for tools whose kubeconfigs expire.
	Kubeconfig Verb = "kubeconfig"
	// Logs prints what helps to understand why a cluster does not work.
	Logs Verb = "logs"
	// LoadImage brings a container image into the cluster's nodes.
	LoadImage Verb = "load-image"
)

// Verbs lists all verbs, in the order in which a cluster's life uses them.
var Verbs = []Verb{Prepare, Create, Observe, Kubeconfig, Stop, Start, LoadImage, Logs, Destroy}

// defaultTimeouts limit one run of a verb. A verb that needs longer exits with 10 and is called again.
var defaultTimeouts = map[Verb]time.Duration{
	Prepare: time.Minute, Create: 30 * time.Minute, Destroy: 30 * time.Minute, Observe: time.Minute,
	Kubeconfig: time.Minute, Stop: 5 * time.Minute, Start: 5 * time.Minute, LoadImage: 5 * time.Minute, Logs: time.Minute,
}

// Recipe is one recipe, as read from its folder.
type Recipe struct {
	// Dir is the folder with the programs.
	Dir string
	// Name is a DNS label; it is also the name of the folder.
	Name string
	// Description is one sentence. Version is chosen by the author.
	Description, Version string
	// Parameters describes what spec.platform.exec.with may set.
	Parameters Parameters
	// Needs is what one cluster needs of the machine on which the verbs run.
	Needs Needs

	verbs    map[Verb]bool
	timeouts map[Verb]time.Duration
}

// Needs is what one cluster of a recipe needs.
type Needs struct {
	// Programs must be found in PATH.
	Programs []string `json:"programs,omitempty"`
	// Memory and Disk are what one running cluster takes of this machine; zero if it runs elsewhere.
	Memory resource.Quantity `json:"memory,omitempty"`
	Disk   resource.Quantity `json:"disk,omitempty"`
}

// Has reports whether the recipe has a program for v.
func (r *Recipe) Has(v Verb) bool { return r.verbs[v] }

// CanHibernate reports whether clusters of the recipe can be stopped and started.
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
	APIVersion  string                   `json:"apiVersion"`
	Kind        string                   `json:"kind"`
	Name        string                   `json:"name"`
	Description string                   `json:"description"`
	Version     string                   `json:"version"`
	With        *Schema                  `json:"with,omitempty"`
	Timeouts    map[Verb]metav1.Duration `json:"timeouts,omitempty"`
	Needs       Needs                    `json:"needs,omitempty"`
}

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// Load reads the recipe in dir. The error lists everything that is wrong with it, each with the file,
// the field, the value and the remedy.
func Load(dir string) (*Recipe, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding recipe %s: %w", dir, err)
	}
	path := filepath.Join(dir, FileName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a recipe: it has no %s: write one, or start from hotspare recipe new NAME", dir, FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading recipe: %w", err)
	}
	var d document
	if err := yaml.UnmarshalStrict(raw, &d); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	r := &Recipe{Dir: dir, Name: d.Name, Description: d.Description, Version: d.Version, Needs: d.Needs, verbs: map[Verb]bool{}, timeouts: map[Verb]time.Duration{}}
	errs := append(d.check(filepath.Base(dir)), r.readTimeouts(d.Timeouts)...)
	errs = append(errs, r.findVerbs()...)
	parameters, err := NewParameters(d.With)
	if err != nil {
		errs = append(errs, err)
	}
	r.Parameters = parameters
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("recipe %s cannot be used: %w", dir, err)
	}
	return r, nil
}

func (d *document) check(folder string) (errs []error) {
	if d.APIVersion != APIVersion || d.Kind != "Recipe" {
		errs = append(errs, fmt.Errorf("%s: apiVersion is %q and kind is %q: set them to %s and Recipe", FileName, d.APIVersion, d.Kind, APIVersion))
	}
	if problems := validation.IsDNS1123Label(d.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("%s: name %q: %s", FileName, d.Name, strings.Join(problems, ", ")))
	} else if d.Name != folder {
		errs = append(errs, fmt.Errorf("%s: name %q differs from the folder %q: pools find a recipe by its folder, so use one name", FileName, d.Name, folder))
	}
	for _, p := range d.Needs.Programs {
		if !programName.MatchString(p) {
			errs = append(errs, fmt.Errorf("%s: needs.programs: %q is not the name of a program: leave out folders and arguments", FileName, p))
		}
	}
	return errs
}

func (r *Recipe) readTimeouts(given map[Verb]metav1.Duration) (errs []error) {
	for _, v := range slices.Sorted(maps.Keys(given)) {
		switch d := given[v].Duration; {
		case !slices.Contains(Verbs, v):
			errs = append(errs, fmt.Errorf("%s: timeouts: %q is not a verb: use one of %s", FileName, v, joinVerbs(Verbs)))
		case d < time.Second:
			errs = append(errs, fmt.Errorf("%s: timeouts.%s: %s is too short: use at least 1s", FileName, v, d))
		default:
			r.timeouts[v] = d
		}
	}
	return errs
}

// findVerbs finds the programs in the folder.
func (r *Recipe) findVerbs() (errs []error) {
	for _, v := range Verbs {
		info, err := os.Stat(filepath.Join(r.Dir, string(v)))
		switch {
		case errors.Is(err, fs.ErrNotExist) && (v == Create || v == Destroy):
			errs = append(errs, fmt.Errorf("program %s is missing: each recipe needs %s and %s", v, Create, Destroy))
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case !info.Mode().IsRegular():
			errs = append(errs, fmt.Errorf("%s is not a file: put a program there", v))
		case info.Mode().Perm()&0o111 == 0:
			errs = append(errs, fmt.Errorf("program %s is not executable: run chmod +x %s", v, filepath.Join(r.Dir, string(v))))
		default:
			r.verbs[v] = true
		}
	}
	if r.verbs[Start] != r.verbs[Stop] {
		errs = append(errs, fmt.Errorf("a recipe has %s and %s, or neither: a cluster that can only do one would never hibernate or never wake", Start, Stop))
	}
	if r.verbs[Stop] && !r.verbs[Observe] {
		errs = append(errs, fmt.Errorf("a recipe with %s needs %s: hotspare must see whether the machines have stopped", Stop, Observe))
	}
	return errs
}

func joinVerbs(verbs []Verb) string {
	words := make([]string, len(verbs))
	for i, v := range verbs {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}

// Missing returns the programs that are not found in PATH.
func (n Needs) Missing() []string {
	var out []string
	for _, p := range n.Programs {
		if _, err := exec.LookPath(p); err != nil {
			out = append(out, p)
		}
	}
	return out
}
