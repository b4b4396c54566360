package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "hotspare.io/hotspare"

// A rule forbids imports in the packages to which it applies.
type rule struct {
	// about and except are patterns of packages of this module; except wins.
	about, except []string
	// deny are patterns of import paths, and allow the exceptions from them;
	// packages of this module are written without the module's path.
	deny, allow []string
	why         string
}

var rules = map[string]rule{
	"the API types import apimachinery and k8s.io/api only": {
		about: []string{"api/..."},
		deny:  []string{"..."},
		allow: []string{"std", "k8s.io/api/...", "k8s.io/apimachinery/...", "api/..."},
		why:   "clients in other repositories import the API types and must not pull in further dependencies",
	},
	"a decider is pure": {
		about:  []string{"internal/bootstrap", "internal/rbac", "internal/claim", "internal/claimqueue", "internal/claimset", "internal/doctor", "internal/fleet/agent/plan", "internal/fleet/instance", "internal/fleet/scaling", "internal/fleet/facts", "internal/gate", "internal/heartbeat", "internal/console/page", "internal/power/csr", "internal/fleet/dataplane", "internal/inventory/...", "internal/machinepool", "internal/pool/...", "internal/power/...", "internal/provision", "internal/sizing/...", "internal/plot", "internal/explain/...", "internal/cloud/capi/plan", "internal/embedded/spoke/clusterdns/zone", "internal/embedded/spoke/loadbalancer/plan", "internal/diagnostics/failure", "internal/diagnostics/retention"},
		except: []string{"internal/power/csr/csrtest"}, // keys for tests
		allow:  []string{"net/netip", "net/url"},       // addresses as values
		deny: []string{
			"os/...", "io/...", "net/...", "log/...", "syscall", "context", "sync/...", "math/rand/...", "crypto/rand",
			"k8s.io/klog/...", "k8s.io/client-go/...", "k8s.io/utils/clock/...", "github.com/go-logr/...", "sigs.k8s.io/controller-runtime/...",
		},
		why: "the same snapshot must give the same plan, and a test must be able to try thousands of snapshots: no client, clock, logger or randomness",
	},
	"a decider imports values, not packages with side effects": {
		about: []string{"internal/bootstrap", "internal/rbac", "internal/claim", "internal/claimpolicy", "internal/claimset", "internal/diagnostics/failure", "internal/diagnostics/retention", "internal/fleet/agent/plan", "internal/fleet/instance", "internal/fleet/scaling", "internal/gate", "internal/heartbeat", "internal/power/csr", "internal/inventory/...", "internal/machinepool", "internal/pool", "internal/power", "internal/provision", "internal/power/schedule", "internal/sizing/..."},
		deny:  []string{"internal/..."},
		allow: []string{"internal/claimqueue", "internal/fault", "internal/heartbeat", "internal/condition", "internal/cloud", "internal/power/csr", "internal/inventory", "internal/inventory/lease", "internal/fleet/scaling", "internal/sizing/..."},
		why:   "imports run from controllers to deciders; a decider that calls back can cause side effects while it decides",
	},
	"facts import the API types and the decider, not the packages that read or write objects": {
		about: []string{"internal/pool/facts", "internal/fleet/facts"},
		deny:  []string{"internal/..."},
		allow: []string{"internal/pool", "internal/bootstrap", "internal/claimpolicy", "internal/claimset", "internal/gate", "internal/fleet/scaling", "internal/inventory/...", "internal/condition", "internal/install/config", "internal/kstatus"},
		why:   "the controller and hotspare pool plan must derive the same facts from the same objects, wherever these come from",
	},
	"packages that explain import objects and deciders, not the packages that display": {
		about: []string{"internal/explain/..."},
		deny:  []string{"internal/..."},
		allow: []string{"internal/plot", "internal/explain/remedy", "internal/explain/humanize", "internal/explain/clusterstate", "internal/condition", "internal/fleet/scaling", "internal/fleet/facts", "internal/inventory", "internal/pool", "internal/pool/facts", "internal/sizing", "internal/sizing/record", "internal/sizing/report"},
		why:   "the command line and the console must explain the same objects in the same way",
	},
	"deciders do not import the packages that explain": {
		about: []string{"internal/claim", "internal/fleet/instance", "internal/fleet/scaling", "internal/fleet/facts", "internal/inventory", "internal/inventory/lease", "internal/pool", "internal/pool/facts", "internal/controller/..."},
		deny:  []string{"internal/explain/fleetplan", "internal/explain/inventoryview", "internal/explain/poolcharts", "internal/explain/poolplan"},
		why:   "texts for users are derived from decisions; a decision derived from a text would change with the text",
	},
	"the data-plane decider imports objects and their capacity only": {
		about: []string{"internal/fleet/dataplane"},
		deny:  []string{"internal/..."},
		allow: []string{"internal/fleet/scaling", "internal/fleet/facts", "internal/condition"},
		why:   "imports run from controllers to deciders; this decider also evaluates reports, for which it uses package facts",
	},
	"manifests are read without a hub": {
		about: []string{"internal/manifest", "internal/crd", "internal/fleet/kasconfig"},
		deny:  []string{"internal/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."},
		allow: []string{"internal/crd"},
		why:   "manifests are files, validated as the API server would validate them; a client would bypass that by asking a hub",
	},
	"shared vocabulary imports nothing but the API types": {
		about: []string{"internal/cloud", "internal/condition", "internal/fault", "internal/install", "internal/embedded/machine", "internal/patch"},
		deny:  []string{"internal/..."},
		allow: []string{"internal/fault"},
		why:   "every package imports them, and so also imports their dependencies",
	},
	"an interface imports no provider": {
		about: []string{"internal/cloud", "internal/install"},
		deny:  []string{"internal/cloud/...", "internal/install/..."},
		why:   "a provider imports the interface; otherwise every program would contain every cloud's SDK",
	},
	"a controller imports no provider": {
		about: []string{"internal/controller/..."},
		deny:  []string{"internal/cloud/...", "internal/install/..."},
		allow: []string{"internal/cloud", "internal/install", "internal/install/config"},
		why:   "cmd selects the platforms; a controller uses the registry that it is given",
	},
	"only the package of buckets imports the client of S3": {
		about:  []string{"..."},
		except: []string{"internal/diagnostics/bucket"},
		deny:   []string{"github.com/aws/aws-sdk-go-v2/service/s3/...", "github.com/aws/aws-sdk-go-v2/config/..."},
		why:    "the credentials of the environment are for the store of bundles only: platforms take theirs from Secrets",
	},
	"controllers do not import each other": {
		about: []string{"internal/controller/..."},
		deny:  []string{"internal/controller/..."},
		why:   "controllers communicate through the API: a controller that reads another's memory fails with two replicas, and after a crash",
	},
	"providers do not import controllers": {
		about: []string{"internal/cloud/...", "internal/install/..."},
		deny:  []string{"internal/controller/...", "internal/manager", "internal/claim", "internal/fleet/...", "internal/inventory/...", "internal/machinepool", "internal/pool/...", "internal/power", "internal/provision", "internal/power/schedule"},
		why:   "a provider carries out requests and does not depend on the code that decides",
	},
	"providers do not depend on a hub": {
		about:  []string{"internal/cloud/...", "internal/install/..."},
		except: []string{"internal/install/job/..."}, // it runs installers as Jobs of the hub
		deny:   []string{"sigs.k8s.io/controller-runtime/..."},
		why:    "a provider, like the cloud itself, must be usable without Kubernetes objects",
	},
	"the orchestration of recipes does not depend on where a program runs": {
		about: []string{"internal/install/exec", "internal/cloud/exec"},
		deny:  []string{"os/...", "syscall", "path/filepath", "io/fs"},
		why:   "runner.Runner and runner.Store run programs and keep state: as processes and folders here, as Jobs and Secrets on a hub",
	},
	"the machine's program does not import the packages that manage it": {
		about: []string{"internal/embedded/spoke/...", "internal/embedded/controlplane/...", "internal/embedded/machine"},
		deny:  []string{"internal/cloud/...", "internal/install/...", "internal/controller/...", "internal/embedded/hub", "internal/up", "api/..."},
		why:   "the folder of package machine is the whole contract between a machine and its platform",
	},
	"the command line uses the API only": {
		about: []string{"internal/cli/..."},
		deny: []string{
			"internal/controller/...", "internal/manager", "internal/embedded/hub", "internal/up", "internal/embedded/spoke/...", "internal/cloud/...",
			"internal/install/...", "internal/embedded/controlplane/...",
		},
		allow: []string{"internal/embedded/controlplane/flock"}, // a lock on a file
		why:   "it must work on any hub as it does on hotspare up",
	},
	"the command line's nouns do not import each other": {
		about:  []string{"internal/cli/..."},
		except: []string{"internal/cli"}, // the root command, which puts them together
		deny:   []string{"internal/cli", "internal/cli/..."},
		allow:  []string{"internal/cli/base", "internal/cli/kubectl/english"}, // a setting of kubectl
		why:    "the commands of one noun must be readable and changeable on their own; shared code belongs in internal/cli/base",
	},
	"the console uses the API only": {
		about: []string{"internal/console/..."},
		deny: []string{
			"internal/cli/...", "internal/controller/...", "internal/manager", "internal/embedded/hub", "internal/up", "internal/embedded/spoke/...", "internal/cloud/...",
			"internal/install/...", "internal/embedded/controlplane/...",
		},
		why: "it must work on any hub as it does on hotspare up, with the rights of the viewer only",
	},
	"an agent does not import the hub's packages": {
		about: []string{"internal/fleet/agent/..."},
		deny:  []string{"internal/..."},
		allow: []string{"internal/fleet/agent/...", "internal/patch"},
		why:   "it runs on a data plane and communicates with the hub through the API",
	},
	"only cmd wires the packages together": {
		about:  []string{"..."},
		except: []string{"cmd/...", "internal/up", "test/..."},
		deny:   []string{"internal/up", "internal/manager", "internal/platform", "cmd/..."},
		why:    "a package that imports all others cannot be imported by any of them",
	},
}

// linkers are the packages that may import k8s.io/kubernetes, directly or indirectly.
var linkers = []string{"internal/embedded/controlplane", "internal/embedded/hub", "internal/embedded/spoke", "internal/embedded/spoke/containernode", "internal/embedded/spoke/signer", "internal/up", "cmd/hotspare", "test/..."}

func TestImportsFollowTheRules(t *testing.T) {
	m := load(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			seen := 0
			for _, p := range m.matching(r.about) {
				if anyMatch(r.except, p) {
					continue
				}
				seen++
				for _, im := range m[p].imports {
					if r.breaks(p, im.path) {
						t.Errorf("%s imports %s, but %s: %s", im.at, im.path, name, r.why)
					}
				}
			}
			if seen == 0 {
				t.Errorf("no package matches %s: the rule checks nothing", strings.Join(r.about, ", "))
			}
		})
	}
}

func TestOnlyTheHubAndTheSpokesContainAnAPIServer(t *testing.T) {
	m := load(t)
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if anyMatch(linkers, p) {
			continue
		}
		if chain := m.importChain(p, "k8s.io/kubernetes/...", map[string]bool{}); chain != nil {
			t.Errorf("%s imports %s through %s: that makes each program with it 100 MB larger, and its importers need `replace` lines",
				p, chain[len(chain)-1], strings.Join(chain, " → "))
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	m := load(t)
	for _, p := range m.matching([]string{"internal/...", "api/...", "cmd/...", "config"}) {
		if !m[p].documented {
			t.Errorf("%s has no package comment: describe it in one sentence above a package clause", p)
		}
	}
}

func TestReadmeIsShort(t *testing.T) {
	const most = 120
	raw, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "\n"); n >= most {
		t.Errorf("README.md has %d lines, want fewer than %d: move content to docs/", n, most)
	}
}

// gofmt replaces the two quotes of an empty string in a doc comment by a typographic closing
// quote, which breaks the CEL rule of a marker: the API server would reject the next generated
// CRD.
func TestMarkersContainNoTypographicQuotes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "api", "*", "*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no files of the API types: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(raw), "\n") {
			if strings.Contains(line, "+kubebuilder") && strings.ContainsAny(line, "“”‘’") {
				t.Errorf("%s:%d: the marker contains a typographic quote, by which gofmt replaces '': write size(x) == 0 instead of x == ''", name, i+1)
			}
		}
	}
}

func TestRulesRejectForbiddenImports(t *testing.T) {
	for name, c := range map[string]struct {
		rule, from, to string
		want           bool
	}{
		"a decider may not import a clock":                  {"a decider is pure", "internal/pool", "k8s.io/utils/clock", true},
		"a decider may not use randomness":                  {"a decider is pure", "internal/pool", "math/rand/v2", true},
		"facts may not import a client":                     {"a decider is pure", "internal/pool/facts", "sigs.k8s.io/controller-runtime/pkg/client", true},
		"a decider may import time":                         {"a decider is pure", "internal/pool", "time", false},
		"the API types may not import a client":             {"the API types import apimachinery and k8s.io/api only", "api/hive/v1", "k8s.io/client-go/rest", true},
		"the API types may import encoding/json":            {"the API types import apimachinery and k8s.io/api only", "api/hive/v1", "encoding/json", false},
		"one controller may not import another":             {"controllers do not import each other", "internal/controller/power", module + "/internal/controller/provision", true},
		"the commands of pools may not use those of claims": {"the command line's nouns do not import each other", "internal/cli/pool", module + "/internal/cli/claim", true},
		"the base may not know a noun":                      {"the command line's nouns do not import each other", "internal/cli/base", module + "/internal/cli/pool", true},
		"commands may use the base":                         {"the command line's nouns do not import each other", "internal/cli/pool", module + "/internal/cli/base", false},
		"the executor of recipes may not run programs":      {"the orchestration of recipes does not depend on where a program runs", "internal/install/exec", "os/exec", true},
		"a controller may import the interface":             {"a controller imports no provider", "internal/controller/power", module + "/internal/cloud", false},
		"a controller may not import a provider":            {"a controller imports no provider", "internal/controller/power", module + "/internal/cloud/local", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rules[c.rule].breaks(c.from, c.to); got != c.want {
				t.Errorf("breaks(%s, %s) = %t, want %t", c.from, c.to, got, c.want)
			}
		})
	}
}

// breaks reports whether package p may not import the package with that path.
func (r rule) breaks(p, imported string) bool {
	imported = strings.TrimPrefix(imported, module+"/")
	return imported != p && anyMatch(r.deny, imported) && !anyMatch(r.allow, imported)
}

func anyMatch(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, p) })
}

// match supports "a/b", "a/b/..." for a/b and everything below it, "..." for everything, and "std"
// for the standard library.
func match(pattern, p string) bool {
	if pattern == "std" {
		first, _, _ := strings.Cut(p, "/")
		return !strings.Contains(first, ".") && !ours(p)
	}
	stem, tree := strings.CutSuffix(pattern, "...")
	if !tree {
		return p == pattern
	}
	stem = strings.TrimSuffix(stem, "/")
	return stem == "" || p == stem || strings.HasPrefix(p, stem+"/")
}

func ours(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{"api", "cmd", "config", "internal", "recipes", "test", "tools"}, first)
}

// pkgs are the packages of this module, by their path below it.
type pkgs map[string]*pkg

type pkg struct {
	documented bool
	imports    []imported
}

// imported is an import in a file that is not a test.
type imported struct{ path, at string }

func (m pkgs) matching(patterns []string) []string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if anyMatch(patterns, p) {
			out = append(out, p)
		}
	}
	return out
}

// importChain returns a chain of imports from p to a package that matches the pattern; nil if there is none.
func (m pkgs) importChain(p, pattern string, seen map[string]bool) []string {
	if m[p] == nil || seen[p] {
		return nil
	}
	seen[p] = true
	for _, im := range m[p].imports {
		if match(pattern, im.path) {
			return []string{im.path}
		}
		next, own := strings.CutPrefix(im.path, module+"/")
		if !own {
			continue
		}
		if rest := m.importChain(next, pattern, seen); rest != nil {
			return append([]string{next}, rest...)
		}
	}
	return nil
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// load reads the imports of every Go file of this module, for all operating systems.
func load(t *testing.T) pkgs {
	t.Helper()
	m, top := pkgs{}, root(t)
	files := token.NewFileSet()
	err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return skip(top, name)
		case filepath.Ext(name) != ".go":
			return nil
		}
		return m.read(files, top, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// skip skips folders that do not belong to this module.
func skip(top, dir string) error {
	if dir == top {
		return nil
	}
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" || base == "dist" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir // a separate module
	}
	return nil
}

func (m pkgs) read(files *token.FileSet, top, name string) error {
	below, err := filepath.Rel(top, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(files, name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p := path.Dir(filepath.ToSlash(below))
	if m[p] == nil {
		m[p] = &pkg{}
	}
	m[p].documented = m[p].documented || f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != ""
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	for _, spec := range f.Imports {
		im, err := importOf(files, filepath.ToSlash(below), spec)
		if err != nil {
			return err
		}
		m[p].imports = append(m[p].imports, im)
	}
	return nil
}

func importOf(files *token.FileSet, file string, spec *ast.ImportSpec) (imported, error) {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return imported{}, fmt.Errorf("reading an import of %s: %w", file, err)
	}
	return imported{path: p, at: fmt.Sprintf("%s:%d", file, files.Position(spec.Pos()).Line)}, nil
}
