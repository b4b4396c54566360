package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// Defaults of the flags.
const (
	defaultPlatform   = "local"
	defaultImageSet   = "kubernetes"
	defaultBaseDomain = "local.hotspare.io"
)

// createOptions are the flags of pool create.
type createOptions struct {
	size, running, workers         int32
	maxSize, maxConcurrent         int32 // negative: no limit
	platform, imageSet, baseDomain string
	containers                     string
	lifetime                       time.Duration
	fake, dryRun                   bool
}

func (a commands) createCommand() *cobra.Command {
	d := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create POOL",
		Short: "Create a pool of spare clusters",
		Long: `Create a pool of spare clusters on this machine. The namespace is created if it
does not exist.

For another platform, print the pool with --dry-run, change its spec.platform
and apply it with "hotspare kubectl apply -f -".`,
		Example: `  hotspare pool create dev --size 2 --running 1
  hotspare pool create try --size 5 --fake
  hotspare pool create ci --size 4 --max-size 10 --claim-lifetime 8h`,
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	d.addFlags(cmd)
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("containers", cobra.FixedCompletions(containerChoices, cobra.ShellCompDirectiveNoFileComp)))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := d.validate(); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		if d.dryRun {
			return a.printPoolPreview(base.StripKindPrefix(args[0]), d)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			return a.runPoolCreate(ctx, h, d.buildPool(h.Namespace, args[0]), d)
		})(cmd, args)
	}
	return cmd
}

func (o *createOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int32Var(&o.size, "size", 1, "number of unclaimed clusters to keep")
	f.Int32Var(&o.running, "running", 0, "number of unclaimed clusters to keep running; the others hibernate")
	f.StringVar(&o.platform, "platform", defaultPlatform, "platform to install clusters on")
	f.Int32Var(&o.workers, "workers", 1, "number of worker machines of each cluster; with 0, the control plane's node only reports that pods run")
	f.StringVar(&o.containers, "containers", "", "whether workers run the containers of pods: Auto (if this machine can), Always or Never")
	f.StringVar(&o.imageSet, "image-set", defaultImageSet, "ClusterImageSet to install")
	f.StringVar(&o.baseDomain, "base-domain", defaultBaseDomain, "DNS domain of the clusters")
	f.Int32Var(&o.maxSize, "max-size", -1, "maximum number of clusters, including claimed ones (-1: no limit)")
	f.Int32Var(&o.maxConcurrent, "max-concurrent", -1, "maximum number of clusters to install or destroy at a time (-1: no limit)")
	f.DurationVar(&o.lifetime, "claim-lifetime", 0, "default lifetime of claims (0: no limit)")
	f.BoolVar(&o.fake, "fake", false, "create clusters without machines, to try things out")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the pool without creating it")
}

func (o *createOptions) validate() error {
	switch {
	case o.platform != defaultPlatform:
		return fmt.Errorf("the flags do not cover the settings of platform %q: print a pool with --dry-run and edit it", o.platform)
	case o.size < 0, o.running < 0, o.workers < 0:
		return errors.New("--size, --running and --workers must not be negative")
	case o.lifetime < 0:
		return errors.New("--claim-lifetime must not be negative")
	case o.containers != "" && !slices.Contains(containerChoices, o.containers):
		return fmt.Errorf("--containers is %q: choose one of %s", o.containers, strings.Join(containerChoices, ", "))
	}
	return nil
}

// containerChoices are the values of --containers.
var containerChoices = []string{string(hivev1.LocalContainersAuto), string(hivev1.LocalContainersAlways), string(hivev1.LocalContainersNever)}

func (o *createOptions) buildPool(namespace, name string) *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec = hivev1.ClusterPoolSpec{
		Platform:      hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: &o.workers, Containers: hivev1.LocalContainers(o.containers)}},
		Size:          o.size,
		RunningCount:  o.running,
		MaxSize:       optionalLimit(o.maxSize),
		MaxConcurrent: optionalLimit(o.maxConcurrent),
		BaseDomain:    o.baseDomain,
		ImageSetRef:   hivev1.ClusterImageSetReference{Name: o.imageSet},
	}
	if o.lifetime > 0 {
		p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Default: base.ToAPIDuration(o.lifetime)}
	}
	if o.fake {
		p.Spec.Annotations = map[string]string{hivev1.AnnotationFake: "true"}
	}
	return p
}

func optionalLimit(n int32) *int32 {
	if n < 0 {
		return nil
	}
	return &n
}

// printPoolPreview prints the pool without creating it, as YAML unless -o sets another format. It
// needs no hub.
func (a commands) printPoolPreview(name string, d *createOptions) error {
	_, namespace, err := a.LoadClientConfig()
	if err != nil {
		namespace = a.Flags.Namespace
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	p := d.buildPool(namespace, name)
	switch a.Flags.Output {
	case base.AsName:
		return a.PrintNames(p)
	case "", base.AsTable:
		a.Flags.Output = base.AsYAML
	}
	if err := base.SetTypeMeta(p); err != nil {
		return err
	}
	return a.printWithoutStatus(p)
}

// printWithoutStatus prints a pool without its status, so that it can be applied.
func (a commands) printWithoutStatus(p *hivev1.ClusterPool) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	delete(fields, "status")
	return a.PrintEncoded(fields)
}

func (a commands) runPoolCreate(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool, d *createOptions) error {
	if err := a.createPoolAndNamespace(ctx, h, p); err != nil {
		return err
	}
	if err := a.warnMissingImageSet(ctx, h, d); err != nil {
		return err
	}
	return a.PrintObject(p, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "pool %s created: it keeps %s\n\nShow its progress:\n  %s\nClaim a cluster:\n  %s\n",
			p.Name, DescribeSize(p.Spec), a.FormatCommand("pool describe %s", p.Name), a.FormatCommand("claim create %s --wait", p.Name))
		return err
	})
}

// createPoolAndNamespace creates the namespace only when the API reports it missing, so that a
// pool in an existing namespace needs no permissions on namespaces.
func (a commands) createPoolAndNamespace(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool) error {
	err := h.Create(ctx, p)
	if isNamespaceMissing(err) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace}}
		if err := h.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating namespace %s: %w", h.Namespace, err)
		}
		fmt.Fprintf(a.Stderr, "namespace %s created\n", h.Namespace)
		err = h.Create(ctx, p)
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		return base.WithRemedy(fmt.Errorf("namespace %s already has a pool %q", h.Namespace, p.Name),
			"change its size with: "+a.FormatCommand("pool scale %s --size N", p.Name))
	case err != nil:
		return fmt.Errorf("creating pool %s: %w", p.Name, err)
	}
	return nil
}

func isNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Kind == "namespaces"
}

// warnMissingImageSet warns if the image set does not exist: the pool creates no clusters until
// it does. Fake clusters need no image set.
func (a commands) warnMissingImageSet(ctx context.Context, h *base.Hub, d *createOptions) error {
	if d.fake {
		return nil
	}
	err := h.Get(ctx, client.ObjectKey{Name: d.imageSet}, &hivev1.ClusterImageSet{})
	if apierrors.IsNotFound(err) && !base.IsAPIMissing(err) {
		fmt.Fprintf(a.Stderr, "note: ClusterImageSet %q does not exist; the pool creates no clusters until it does\n", d.imageSet)
		return nil
	}
	return err
}
