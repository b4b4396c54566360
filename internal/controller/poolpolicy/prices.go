package poolpolicy

import (
	"context"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sizing/pricetable"
)

// estimatePrices returns the estimated prices of a policy that has none, or why no estimate is possible; nil if the
// policy has prices. Whoever may read PoolPolicies sees the result: of the pool's Secret it has instance types and
// numbers of machines only.
func (r *Reconciler) estimatePrices(ctx context.Context, p *v1alpha1.PoolPolicy) (*v1alpha1.EstimatedPrices, error) {
	if p.Spec.Prices != nil {
		return nil, nil
	}
	estimate, problem, err := r.estimate(ctx, client.ObjectKeyFromObject(p))
	switch {
	case err != nil && fault.KindOf(err) != fault.Denied:
		return nil, err
	case err != nil:
		return &v1alpha1.EstimatedPrices{Basis: joinProblem("no estimate: "+fault.OneLine(err), problem)}, nil
	}
	return &v1alpha1.EstimatedPrices{
		Running: formatPrice(estimate.Prices.Running), Hibernating: formatPrice(estimate.Prices.Hibernating),
		Currency: estimate.Currency, Basis: joinProblem(estimate.Basis, problem),
	}, nil
}

// estimate reads the machines of a pool and the table of prices, and computes the estimate. A problem of the table does
// not prevent one; other errors that are fault.Denied say why there is none.
func (r *Reconciler) estimate(ctx context.Context, key types.NamespacedName) (e pricetable.Estimate, problem string, err error) {
	machines, err := r.readMachines(ctx, key)
	if err != nil {
		return e, "", err
	}
	table, problem, err := r.readPriceTable(ctx)
	if err != nil {
		return e, "", err
	}
	e, err = pricetable.EstimatePrices(table, machines)
	return e, problem, err
}

// readMachines returns the machines of a cluster of a pool. The patches of customizations are not applied.
func (r *Reconciler) readMachines(ctx context.Context, key types.NamespacedName) (pricetable.Machines, error) {
	var p hivev1.ClusterPool
	err := r.Client.Get(ctx, key, &p)
	platform := p.Spec.Platform.Name()
	switch {
	case apierrors.IsNotFound(err):
		return pricetable.Machines{}, fault.NewDenied("there is no ClusterPool %s", key)
	case err != nil:
		return pricetable.Machines{}, fmt.Errorf("reading the pool: %w", err)
	case p.Unreadable != "":
		return pricetable.Machines{}, fault.NewDenied("the pool cannot be read: %s", p.Unreadable)
	case facts.IsFake(&p):
		return pricetable.Machines{}, fault.NewDenied("the clusters of the pool are fake and have no machines: set spec.prices of the PoolPolicy")
	}
	if err := pricetable.CheckPlatform(platform); err != nil {
		return pricetable.Machines{}, err
	}
	template, err := r.readTemplate(ctx, &p)
	if err != nil {
		return pricetable.Machines{}, err
	}
	return listMachines(template, &p)
}

// readTemplate returns the install-config template of a pool; nil if the pool has none.
func (r *Reconciler) readTemplate(ctx context.Context, p *hivev1.ClusterPool) ([]byte, error) {
	ref := p.Spec.InstallConfigSecretTemplateRef
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	var secret corev1.Secret
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}, &secret)
	const remedy = "or change spec.installConfigSecretTemplateRef of the pool, or set spec.prices of the PoolPolicy"
	switch {
	case apierrors.IsNotFound(err):
		return nil, fault.NewDenied("Secret %s, the install-config template of the pool, does not exist: create it, %s", ref.Name, remedy)
	case apierrors.IsForbidden(err):
		return nil, fault.NewDenied("hotspare may not get Secret %s, the install-config template of the pool: let ClusterRole hotspare-manager get Secrets, %s",
			ref.Name, remedy)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	template := secret.Data[hivev1.SecretKeyInstallConfig]
	if len(template) == 0 {
		return nil, fault.NewDenied("Secret %s, the install-config template of the pool, has no key %s: add it, %s", ref.Name, hivev1.SecretKeyInstallConfig, remedy)
	}
	return template, nil
}

// listMachines returns the machines of the install-config that the clusters of a pool get.
func listMachines(template []byte, p *hivev1.ClusterPool) (pricetable.Machines, error) {
	rendered, err := facts.RenderInstallConfig(template, p, p.Name)
	if err != nil {
		// The error may quote keys of the template.
		return pricetable.Machines{}, fault.NewDenied("the install-config template of the pool is not valid: condition MissingDependencies of the pool says why")
	}
	platform := p.Spec.Platform.Name()
	found, err := config.ListMachines(rendered, platform)
	if err != nil {
		return pricetable.Machines{}, fault.NewDenied("the install-config of the pool is not valid: %w", err)
	}
	out := pricetable.Machines{Platform: platform, ControlPlane: pricetable.Group{Type: found.ControlPlane.Type, Count: found.ControlPlane.Replicas}}
	for _, g := range found.Compute {
		out.Compute = append(out.Compute, pricetable.Group{Type: g.Type, Count: g.Replicas})
	}
	return out, nil
}

// readPriceTable returns the table of prices: the default one, with the entries of the owner of the hub. If the owner's
// table cannot be used, it returns the default one, and what is wrong: a mistake there stops no pool. If the owner's
// table has another currency, the default one would have other amounts: the error is fault.Denied.
func (r *Reconciler) readPriceTable(ctx context.Context) (table pricetable.Table, problem string, err error) {
	base := pricetable.Default()
	if r.Namespace == "" {
		return base, "", nil
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: pricetable.ConfigMapName}
	var found corev1.ConfigMap
	err = r.Live.Get(ctx, key, &found)
	text, has := found.Data[pricetable.ConfigMapKey]
	switch {
	case apierrors.IsNotFound(err):
		return base, "", nil
	case apierrors.IsForbidden(err):
		return base, fmt.Sprintf("hotspare may not get ConfigMap %s: let ClusterRole hotspare-manager get ConfigMaps", key), nil
	case err != nil:
		return base, "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	case !has:
		return base, fmt.Sprintf("ConfigMap %s has no key %s, so it is not used: add the key, or delete the ConfigMap", key, pricetable.ConfigMapKey), nil
	}
	own, err := pricetable.Parse([]byte(text))
	switch {
	case err == nil:
		return pricetable.Merge(base, own), "", nil
	case own.Currency != "" && own.Currency != base.Currency:
		return base, "", fault.NewDenied("key %s of ConfigMap %s, whose currency is %s, cannot be used: %w; or set spec.prices of the PoolPolicy",
			pricetable.ConfigMapKey, key, own.Currency, err)
	}
	return base, fmt.Sprintf("key %s of ConfigMap %s is not used: %s", pricetable.ConfigMapKey, key, fault.OneLine(err)), nil
}

// joinProblem adds what is wrong with the table of prices to a text, if anything is.
func joinProblem(text, problem string) string {
	if problem == "" {
		return text
	}
	return text + "; " + problem
}

// formatPrice writes a price with at most six digits after the point.
func formatPrice(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}
