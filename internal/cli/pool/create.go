package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// What a pool is made of when the flags say nothing else.
const (
	defaultPlatform   = "local"
	defaultImageSet   = "kubernetes"
	defaultBaseDomain = "local.hotspare.io"
)

// createOptions is a pool as the flags describe it.
type createOptions struct {
	size, running, workers         int32
	maxSize, maxConcurrent         int32 // below zero: no limit
	platform, imageSet, baseDomain string
	lifetime                       time.Duration
	fake, dryRun                   bool
}

func (a commands) createCommand() *cobra.Command {
	d := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create POOL",
		Short: "Make a pool of spare clusters",
		Long: `Make a pool of spare clusters on this machine. Its namespace is made if need be.

For another platform, print the pool with --dry-run, change its spec.platform
and hand it to "hotspare kubectl apply -f -".`,
		Example: `  hotspare pool create dev --size 2 --running 1
  hotspare pool create try --size 5 --fake
  hotspare pool create ci --size 4 --max-size 10 --claim-lifetime 8h`,
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	d.addFlags(cmd)
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

func (d *createOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int32Var(&d.size, "size", 1, "unclaimed clusters to keep")
	f.Int32Var(&d.running, "running", 0, "how many of them to keep running; the others hibernate")
	f.StringVar(&d.platform, "platform", defaultPlatform, "where clusters are made")
	f.Int32Var(&d.workers, "workers", 1, "worker machines of each cluster; with 0 pods run on the control plane")
	f.StringVar(&d.imageSet, "image-set", defaultImageSet, "ClusterImageSet to install")
	f.StringVar(&d.baseDomain, "base-domain", defaultBaseDomain, "DNS domain of the clusters")
	f.Int32Var(&d.maxSize, "max-size", -1, "most clusters at a time, claimed ones too (-1: no limit)")
	f.Int32Var(&d.maxConcurrent, "max-concurrent", -1, "most clusters to install or destroy at a time (-1: no limit)")
	f.DurationVar(&d.lifetime, "claim-lifetime", 0, "lifetime of claims that name none (0: for ever)")
	f.BoolVar(&d.fake, "fake", false, "make clusters that exist on paper only, to try things out")
	f.BoolVar(&d.dryRun, "dry-run", false, "print the pool and make nothing")
}

func (d *createOptions) validate() error {
	switch {
	case d.platform != defaultPlatform:
		return fmt.Errorf("pools of platform %q need more than flags can say: start from --dry-run", d.platform)
	case d.size < 0, d.running < 0, d.workers < 0:
		return errors.New("--size, --running and --workers cannot be below 0")
	case d.lifetime < 0:
		return errors.New("--claim-lifetime cannot be below 0")
	}
	return nil
}

func (d *createOptions) buildPool(namespace, name string) *hivev1.ClusterPool {
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec = hivev1.ClusterPoolSpec{
		Platform:      hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: &d.workers}},
		Size:          d.size,
		RunningCount:  d.running,
		MaxSize:       optionalLimit(d.maxSize),
		MaxConcurrent: optionalLimit(d.maxConcurrent),
		BaseDomain:    d.baseDomain,
		ImageSetRef:   hivev1.ClusterImageSetReference{Name: d.imageSet},
	}
	if d.lifetime > 0 {
		p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Default: base.ToAPIDuration(d.lifetime)}
	}
	if d.fake {
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

// printPoolPreview prints the pool as it would be made, as YAML unless another format
// is asked for. It needs no hub.
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

// printWithoutStatus prints what is to be applied: of a status nothing is known.
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
		_, err := fmt.Fprintf(w, "pool %s created: it keeps %s\n\nSee it fill:\n  %s\nClaim a cluster:\n  %s\n",
			p.Name, DescribeSize(p.Spec), a.FormatCommand("pool describe %s", p.Name), a.FormatCommand("claim create %s --wait", p.Name))
		return err
	})
}

// createPoolAndNamespace makes the namespace only when the API misses it, so that
// nobody needs rights on namespaces for a pool in one that is there.
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
		return base.WithRemedy(fmt.Errorf("namespace %s has a pool %q already", h.Namespace, p.Name),
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

// warnMissingImageSet says so when the image set does not exist: the pool then makes no
// clusters until it does. Fake clusters are made without.
func (a commands) warnMissingImageSet(ctx context.Context, h *base.Hub, d *createOptions) error {
	if d.fake {
		return nil
	}
	err := h.Get(ctx, client.ObjectKey{Name: d.imageSet}, &hivev1.ClusterImageSet{})
	if apierrors.IsNotFound(err) && !base.IsAPIMissing(err) {
		fmt.Fprintf(a.Stderr, "note: ClusterImageSet %q does not exist; the pool makes no clusters until it does\n", d.imageSet)
		return nil
	}
	return err
}
