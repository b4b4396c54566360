package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/fleet/kasconfig"
)

// importOptions are the flags of fleet import.
type importOptions struct {
	files []string
	dir   string
	apply bool
	kasconfig.Options
}

const importLong = `Convert the configuration files of kas-fleet-manager to InstanceTypes and FleetRegions,
and print them; with --apply, write them to the hub. The files are identified by name:

  kafka-instance-types-configuration.yaml   types, sizes and their units
  provider-configuration.yaml               regions with limit and slack
  dynamic-scaling-configuration.yaml        nodes; whether decisions are carried out
  node-prewarming-configuration.yaml        reserved instances

The first file is required; the others are optional. An unknown key, an undefined type
or size, slack above the limit, a negative number and a minimum above its maximum are
errors. The command writes nothing if there is an error.

The files do not define the source of clusters: the regions claim clusters from
ClusterPools with the names of the regions, or from those of --pool and
--multi-zone-pool.`

const importExample = `  hotspare fleet import --dir config/
  hotspare fleet import --dir config/ --pool spares --multi-zone-pool spares-multi-zone --apply -n fleet`

func (a commands) importCommand() *cobra.Command {
	q := &importOptions{}
	cmd := &cobra.Command{
		Use:               "import -f FILE...|--dir DIR",
		Short:             "Convert configuration files of kas-fleet-manager, and print or apply the result",
		Long:              importLong,
		Example:           importExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringArrayVarP(&q.files, "filename", "f", nil, "configuration file to read; may be repeated")
	f.StringVar(&q.dir, "dir", "", "folder with the configuration files")
	f.BoolVar(&q.apply, "apply", false, "write the objects to the hub; the spec of an existing object is replaced")
	f.StringVar(&q.Pool, "pool", "", "ClusterPool for data planes in a single zone (default: the region's name)")
	f.StringVar(&q.MultiZonePool, "multi-zone-pool", "", "ClusterPool for data planes in several zones (default: the region's name with -multi-zone)")
	f.StringToStringVar(&q.NodesPerUnit, "nodes-per-unit", nil, "number of nodes for a streaming unit, by type (default: standard=3,developer=0.1)")
	for _, name := range []string{"pool", "multi-zone-pool", "nodes-per-unit"} {
		base.MustSucceed(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(q.files) == 0 && q.dir == "" {
			return base.UsageErrorFor(errors.New("specify the files to read: -f FILE, or --dir DIR for their folder"), cmd)
		}
		m, err := q.readConfigFiles(a.targetNamespace())
		if err != nil {
			return err
		}
		for _, n := range m.Notes {
			fmt.Fprintf(a.Stderr, "note: %s\n", n)
		}
		if !q.apply {
			return a.PrintManifests(listImportedObjects(m))
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error { return a.applyManifests(ctx, h, m) })(cmd, args)
	}
	return cmd
}

// targetNamespace returns the namespace to write to: from the flag, else from the kubeconfig.
func (a commands) targetNamespace() string {
	_, namespace, err := a.LoadClientConfig()
	if err != nil {
		namespace = a.Flags.Namespace
	}
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// readConfigFiles finds the files by their names.
func (o *importOptions) readConfigFiles(namespace string) (kasconfig.Result, error) {
	o.Namespace = namespace
	paths := slices.Clone(o.files)
	if o.dir != "" {
		found := false
		for _, name := range kasconfig.Names {
			path := filepath.Join(o.dir, name)
			_, err := os.Stat(path)
			switch {
			case err == nil:
				paths, found = append(paths, path), true
			case !errors.Is(err, fs.ErrNotExist):
				return kasconfig.Result{}, fmt.Errorf("reading %s: %w", path, err)
			}
		}
		if !found {
			return kasconfig.Result{}, base.WithRemedy(fmt.Errorf("folder %s contains none of the configuration files", o.dir), "expected "+humanize.JoinWords(kasconfig.Names))
		}
	}
	files := map[string]kasconfig.File{}
	for _, path := range paths {
		name := filepath.Base(path)
		if !slices.Contains(kasconfig.Names, name) {
			return kasconfig.Result{}, base.WithRemedy(fmt.Errorf("%s is not a known configuration file", path), "files are identified by name: "+humanize.JoinWords(kasconfig.Names))
		}
		if other, twice := files[name]; twice {
			return kasconfig.Result{}, fmt.Errorf("%s and %s have the same name: specify one of them", other.Name, path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return kasconfig.Result{}, err
		}
		files[name] = kasconfig.File{Name: path, Text: text}
	}
	return kasconfig.Read(files, o.Options)
}

// listImportedObjects returns the objects to write, types first.
func listImportedObjects(m kasconfig.Result) []client.Object {
	var out []client.Object
	for _, t := range m.Types {
		out = append(out, t)
	}
	for _, r := range m.Regions {
		out = append(out, r)
	}
	return out
}

// applyManifests creates missing objects and replaces the spec of existing ones.
func (a commands) applyManifests(ctx context.Context, h *base.Hub, m kasconfig.Result) error {
	for _, o := range listImportedObjects(m) {
		what := strings.ToLower(importedKind(o)) + " " + o.GetName()
		was := o.DeepCopyObject().(client.Object) // of the same type
		err := h.Get(ctx, client.ObjectKeyFromObject(o), was)
		switch {
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			if err := h.Create(ctx, o); err != nil {
				return fmt.Errorf("creating %s: %w", what, err)
			}
			fmt.Fprintf(a.Stdout, "%s created\n", what)
		case err != nil:
			return fmt.Errorf("reading %s: %w", what, err)
		default:
			before := was.DeepCopyObject().(client.Object) // of the same type
			replaceSpec(was, o)
			if err := h.Patch(ctx, was, client.MergeFrom(before)); err != nil {
				return fmt.Errorf("changing %s: %w", what, err)
			}
			fmt.Fprintf(a.Stdout, "%s configured\n", what)
		}
	}
	return nil
}

func importedKind(o client.Object) string {
	if _, ok := o.(*v1alpha1.InstanceType); ok {
		return "InstanceType"
	}
	return "FleetRegion"
}

// replaceSpec copies the spec of an object to another object of its kind.
func replaceSpec(was, next client.Object) {
	switch was := was.(type) {
	case *v1alpha1.InstanceType:
		was.Spec = next.(*v1alpha1.InstanceType).Spec
	case *v1alpha1.FleetRegion:
		was.Spec = next.(*v1alpha1.FleetRegion).Spec
	}
}
