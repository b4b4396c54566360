package docs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/cmd"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/crd"
	"hotspare.io/hotspare/test/pages"
)

// elsewhere are programs that are not ours to check.
var elsewhere = []string{"cat", "cd", "export", "git", "go", "b", "grep", "tail", "ls", "sh", "source", "curl", "helm", "podman", "echo", "ln", "mkdir", "rm", "sha256sum", "base64"}

func TestCommandsExist(t *testing.T) {
	targets := makeTargets(t)
	checked := 0
	for _, b := range blocksOf(t, "console", "sh") {
		for _, l := range b.ListCommands() {
			for _, words := range programs(l.Text) {
				name, args := filepath.Base(words[0]), words[1:]
				var err error
				switch {
				case name == "hotspare":
					err = hotspare(t, args)
				case name == "hotspare-manager":
					err = helped(t, name, args)
				case name == "kubectl" && len(args) > 0 && args[0] == "hotspare": // our plugin
					err = hotspare(t, args[1:])
				case name == "kubectl":
					err = parses(cmd.NewDefaultKubectlCommand(), args)
				case name == "make":
					err = makes(targets, args)
				case slices.Contains(elsewhere, name), strings.HasSuffix(name, "="):
				default:
					err = fmt.Errorf("this test does not know the program %s", name)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", b.PositionOf(l), strings.Join(words, " "), err)
				}
				checked++
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands were found: this test looks in the wrong place", checked)
	}
}

// hotspare checks a call of our own program. Those of its commands that start
// and stop the system are not a package's, so the program is asked for them.
func hotspare(t *testing.T, args []string) error {
	t.Helper()
	root := cli.New(base.Options{})
	root.InitDefaultCompletionCmd()
	found, rest, err := root.Find(args)
	if err != nil || found == root {
		first := slices.IndexFunc(args, func(a string) bool { return a == "up" || a == "down" || a == "agent" })
		if first < 0 {
			return parses(root, args)
		}
		return helped(t, "hotspare", slices.Delete(slices.Clone(args), first, first+1), args[first])
	}
	if found.Name() == "kubectl" {
		return parses(cmd.NewDefaultKubectlCommand(), rest)
	}
	return parses(root, args)
}

// parses finds the command of a tree that args call, and checks its flags and arguments.
func parses(root *cobra.Command, args []string) error {
	found, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if !found.Runnable() || found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no such command below %q", found.CommandPath())
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}

// helped checks flags against what the help of a built program lists, or of its command.
func helped(t *testing.T, program string, args []string, command ...string) error {
	t.Helper()
	binary := filepath.Join(top, "bin", program)
	help, err := exec.CommandContext(t.Context(), binary, append(command, "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("running %s: %v: build it with make build", binary, err)
	}
	for _, a := range args {
		flag, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(flag, "-") && !bytes.Contains(help, []byte(" "+flag+" ")) {
			return fmt.Errorf("its help has no flag %s", flag)
		}
	}
	return nil
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z/-]+):`).FindAllSubmatch(raw, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

func makes(targets, args []string) error {
	for _, a := range args {
		if !assigns(a) && !slices.Contains(targets, a) {
			return fmt.Errorf("the Makefile has no target %s", a)
		}
	}
	return nil
}

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	all := map[string]pages.Page{}
	for _, p := range allPages(t) {
		all[p.Name] = p
	}
	for _, p := range all {
		for _, l := range p.Prose {
			for _, m := range link.FindAllStringSubmatch(l.Text, -1) {
				if err := follow(all, p, m[1]); err != nil {
					t.Errorf("%s:%d: %v", p.Name, l.Number, err)
				}
			}
		}
	}
}

func follow(all map[string]pages.Page, from pages.Page, target string) error {
	if strings.HasPrefix(target, "https://") {
		return nil // of others; a test should not need the network
	}
	file, anchor, _ := strings.Cut(target, "#")
	name := from.Name
	if file != "" {
		name = filepath.ToSlash(filepath.Join(filepath.Dir(from.Name), file))
	}
	if _, err := os.Stat(filepath.Join(top, name)); err != nil {
		return fmt.Errorf("the link %s leads nowhere: there is no %s", target, name)
	}
	if anchor == "" {
		return nil
	}
	for _, l := range all[name].Prose {
		if m := heading.FindStringSubmatch(l.Text); m != nil && slug(m[1]) == anchor {
			return nil
		}
	}
	return fmt.Errorf("the link %s leads nowhere: %s has no such heading", target, name)
}

// slug is a heading as GitHub makes it an anchor.
func slug(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

func TestManifestsAreValid(t *testing.T) {
	decoder := strictDecoder(t)
	for _, b := range blocksOf(t, "yaml") {
		var text strings.Builder
		for _, l := range b.Lines[1:] {
			text.WriteString(l.Text + "\n")
		}
		for doc := range strings.SplitSeq(text.String(), "---\n") {
			if strings.TrimSpace(doc) == "" {
				continue
			}
			_, kind, err := decoder.Decode([]byte(doc), nil, nil)
			if err == nil && (kind.Group == hivev1.GroupVersion.Group || kind.Group == v1alpha1.GroupVersion.Group) {
				err = admitted(t, kind.Kind, doc)
			}
			if err != nil {
				t.Errorf("%s: %v", b.PositionOf(b.Lines[0]), err)
			}
		}
	}
}

// admitted asks the schema: our own types are read leniently.
func admitted(t *testing.T, kind, doc string) error {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil { // whole numbers are whole, as to the API server
		return err
	}
	s, err := crd.LoadSchema(kind)
	if err != nil {
		return err
	}
	v, err := s.Admit(t.Context(), object)
	if err == nil && len(v.Unknown) > 0 {
		err = fmt.Errorf("there is no field %s", strings.Join(v.Unknown, ", "))
	}
	return errors.Join(err, v.Faults.ToAggregate())
}

// strictDecoder knows our kinds and those of Kubernetes, and no field that they do not have.
func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiserverv1.AddToScheme, hivev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
}

// The kinds that have a page of their own.
var kinds = map[string]any{
	"clusterpool":                    hivev1.ClusterPool{},
	"clusterclaim":                   hivev1.ClusterClaim{},
	"clusterdeployment":              hivev1.ClusterDeployment{},
	"clusterimageset":                hivev1.ClusterImageSet{},
	"powerschedule":                  v1alpha1.PowerSchedule{},
	"poolpolicy":                     v1alpha1.PoolPolicy{},
	"clusterbootstrap":               v1alpha1.ClusterBootstrap{},
	"claimpolicy":                    v1alpha1.ClaimPolicy{},
	"claimset":                       v1alpha1.ClaimSet{},
	"instancetype":                   v1alpha1.InstanceType{},
	"fleetregion":                    v1alpha1.FleetRegion{},
	"dataplane":                      v1alpha1.DataPlane{},
	"dataplaneagent":                 v1alpha1.DataPlaneAgent{},
	"serviceinstance":                v1alpha1.ServiceInstance{},
	"clusterdeploymentcustomization": hivev1.ClusterDeploymentCustomization{},
	"machinepool":                    hivev1.MachinePool{},
	"clusterprovision":               hivev1.ClusterProvision{},
	"clusterdeprovision":             hivev1.ClusterDeprovision{},
}

var fieldPath = regexp.MustCompile("`((?:spec|status)(?:\\.[a-zA-Z0-9]+)+)`")

// What is written by hand on a kind's page names every field of its spec and status, and
// none that it does not have.
func TestKindPagesMatchTheAPI(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			p := read(t, filepath.Join(top, "docs", "kinds", name+".md"))
			typ := reflect.TypeOf(kind)
			named := map[string]bool{}
			for _, l := range p.Prose {
				if l.Text == allFields {
					break
				}
				for _, m := range fieldPath.FindAllStringSubmatch(l.Text, -1) {
					parts := strings.Split(m[1], ".")
					named[strings.Join(parts[:2], ".")] = true
					if strings.HasPrefix(l.Text, "| ") && !resolves(typ, parts) {
						t.Errorf("%s:%d: there is no field %s", p.Name, l.Number, m[1])
					}
				}
			}
			for _, section := range []string{"spec", "status"} {
				for _, field := range fieldsOf(typ, section) {
					if !named[section+"."+field] {
						t.Errorf("%s does not tell of %s.%s", p.Name, section, field)
					}
				}
			}
		})
	}
}

func resolves(typ reflect.Type, parts []string) bool {
	for _, part := range parts {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, typ.Kind()) {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return false
		}
		if typ == reflect.TypeFor[runtime.RawExtension]() {
			return true // kept as written: not ours to know
		}
		f, ok := fieldCalled(typ, part)
		if !ok {
			return false
		}
		typ = f.Type
	}
	return true
}

func fieldCalled(typ reflect.Type, name string) (reflect.StructField, bool) {
	for f := range typ.Fields() {
		if jsonName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func fieldsOf(typ reflect.Type, section string) []string {
	f, ok := fieldCalled(typ, section)
	if !ok {
		return nil
	}
	var out []string
	for f := range f.Type.Fields() {
		out = append(out, jsonName(f))
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
