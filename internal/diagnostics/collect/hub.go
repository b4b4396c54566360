// Package collect reads what a bundle of diagnostics holds: from the hub, with the rights of its reader, and from
// the cluster itself if its API answers.
package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/rbac"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// Limits of what is read from the hub.
const (
	secretsPage  = 500
	maxSecrets   = 2000 // every file is searched for each of their values
	listTries    = 3
	maxEvents    = 300
	clusterLimit = 45 * time.Second
)

// Log is a log that a source has found.
type Log struct{ Name, Text string }

// Collector collects bundles.
type Collector struct {
	// Hub reads the objects of the hub. It should read them from the API server: a bundle is about what is there now.
	Hub client.Reader
	// Connect returns a reader of the cluster's API and a function that closes it; or trouble, which says why there
	// is none. An error is the hub's own.
	Connect func(ctx context.Context, cd *hivev1.ClusterDeployment) (spoke Spoke, closeSpoke func(), trouble string, err error)
	// FindLogs returns the logs of the installer, the machines or the recipe of a cluster; nil finds none. With an
	// error, it may return the logs that it has found before.
	FindLogs func(ctx context.Context, cd *hivev1.ClusterDeployment) ([]Log, error)
	Limits   diagnostics.Limits
	// KeepTexts keeps texts if not all Secrets can be read whose values may be in them. What looks like a secret is
	// removed all the same. A bundle that is stored must not have such texts.
	KeepTexts bool
}

// Bundle collects a bundle about a cluster. It returns an error only if ctx ends: a part that cannot be read is a
// gap of the bundle. If not all Secrets can be read whose values may be in it, the bundle has no texts, unless KeepTexts is
// set.
func (c *Collector) Bundle(ctx context.Context, cd *hivev1.ClusterDeployment, cause string, at time.Time) (*diagnostics.Bundle, error) {
	subject := diagnostics.Subject{Namespace: cd.Namespace, Name: cd.Name, UID: string(cd.UID), Cause: cause, At: at}
	logs := c.prepareLogs(ctx, cd) // first: they go with a cluster that is being deleted
	related, problems := c.readRelated(ctx, cd)
	secrets, problem := c.readSecrets(ctx, cd, related)
	scrubber := diagnostics.NewScrubber(secrets...)
	if problem != "" && !c.KeepTexts {
		scrubber = diagnostics.NewWithholdingScrubber(problem)
	}
	b := diagnostics.NewBundle(subject, c.Limits, scrubber)
	if problem != "" && c.KeepTexts {
		b.AddGap("values of Secrets, to remove them from the bundle", problem)
	}
	for _, g := range problems {
		b.AddGap(g.Part, g.Reason)
	}
	addHub(b, cd, related)
	logs(b)
	c.addHubEvents(ctx, b, cd, related)
	c.addCluster(ctx, b, cd)
	return b, ctx.Err()
}

// related are the objects that belong to a cluster; a field of what does not exist is nil.
type related struct {
	pool       *hivev1.ClusterPool
	claim      *hivev1.ClusterClaim
	policy     *v1alpha1.PoolPolicy
	bootstrap  *v1alpha1.ClusterBootstrap
	provisions []hivev1.ClusterProvision
	// unknownSecrets says why an object that may refer to Secrets could not be read; empty if each could be read, or
	// does not exist.
	unknownSecrets string
}

// markSecretsUnknown records why an object that may refer to Secrets is not known; an empty reason is none.
func (r *related) markSecretsUnknown(what, reason string) {
	if reason != "" {
		r.unknownSecrets = "the Secrets to which " + what + " refers are not known: " + reason
	}
}

// markUndecodedSecrets records the objects that were read and cannot be decoded.
func (r *related) markUndecodedSecrets() {
	if r.pool != nil {
		r.markSecretsUnknown("the pool", r.pool.Unreadable)
	}
	if r.policy != nil {
		r.markSecretsUnknown("the bootstrap of the PoolPolicy", r.policy.Unreadable)
	}
	if r.bootstrap != nil {
		r.markSecretsUnknown("the bootstrap", r.bootstrap.Unreadable)
	}
}

// readRelated reads the objects that belong to a cluster.
func (c *Collector) readRelated(ctx context.Context, cd *hivev1.ClusterDeployment) (related, []diagnostics.Gap) {
	var (
		out  related
		gaps []diagnostics.Gap
	)
	addGap := func(part string, err error) {
		gaps = append(gaps, diagnostics.Gap{Part: part, Reason: describeHubError(err)})
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		var err error
		if out.pool, err = readNamed(ctx, c.Hub, ref.Namespace, ref.PoolName, &hivev1.ClusterPool{}); err != nil {
			addGap("hub/pool.yaml", err)
			if !apierrors.IsNotFound(err) {
				out.markSecretsUnknown("the pool", describeHubError(err))
			}
		}
		if out.claim, err = readNamed(ctx, c.Hub, ref.Namespace, ref.ClaimName, &hivev1.ClusterClaim{}); err != nil {
			addGap("hub/claim.yaml", err)
		}
		out.policy, out.bootstrap, err = sparerequirements.Reader{Cached: c.Hub}.ReadBootstrap(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName})
		if err != nil {
			addGap("hub/bootstrap.yaml", err)
			out.markSecretsUnknown("the bootstrap", describeHubError(err))
		}
		out.markUndecodedSecrets()
	}
	var list hivev1.ClusterProvisionList
	if err := c.Hub.List(ctx, &list, client.InNamespace(cd.Namespace)); err != nil {
		addGap("hub/provisions.yaml", err)
	}
	for _, p := range list.Items {
		if p.Spec.ClusterDeploymentRef.Name == cd.Name {
			out.provisions = append(out.provisions, p)
		}
	}
	slices.SortFunc(out.provisions, func(a, b hivev1.ClusterProvision) int { return cmp.Compare(a.Spec.Attempt, b.Spec.Attempt) })
	return out, gaps
}

// readNamed reads an object. It returns nil after an error, and if the name is empty.
func readNamed[T client.Object](ctx context.Context, hub client.Reader, namespace, name string, into T) (T, error) {
	var none T
	if name == "" {
		return none, nil
	}
	if err := hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into); err != nil {
		return none, err
	}
	return into, nil
}

// describeHubError says in a few words why an object of the hub could not be read.
func describeHubError(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "it does not exist"
	case apierrors.IsForbidden(err):
		return "you may not read it: " + err.Error()
	default:
		return err.Error()
	}
}

// readSecrets reads the Secrets whose values may be in what is collected: they are only searched for, and never part of a
// bundle. It returns those that it can read, and why it cannot read all of them.
func (c *Collector) readSecrets(ctx context.Context, cd *hivev1.ClusterDeployment, related related) (secrets []corev1.Secret, problem string) {
	problem = related.unknownSecrets
	names := secretNames(related)
	secrets, err := c.listSecrets(ctx, cd.Namespace)
	if err != nil {
		problem = cmp.Or(problem, fmt.Sprintf("the Secrets in namespace %s are not known: %s", cd.Namespace, describeHubError(err)))
		for _, name := range rbac.ReadableSecrets(cd) { // the user of a claim may read these
			names = append(names, types.NamespacedName{Namespace: cd.Namespace, Name: name})
		}
	}
	for _, name := range names {
		var s corev1.Secret
		if err := c.Hub.Get(ctx, name, &s); err == nil {
			secrets = append(secrets, s)
		} else if !apierrors.IsNotFound(err) {
			problem = cmp.Or(problem, fmt.Sprintf("Secret %s is not known: %s", name, describeHubError(err)))
		}
	}
	return secrets, problem
}

// listSecrets lists the Secrets in a namespace, except the releases of Helm. It starts again after an error: one page
// may time out, and a list that takes long may expire.
func (c *Collector) listSecrets(ctx context.Context, namespace string) (secrets []corev1.Secret, err error) {
	for range listTries {
		if secrets, err = c.listSecretPages(ctx, namespace); err == nil || apierrors.IsForbidden(err) || ctx.Err() != nil {
			break
		}
	}
	return secrets, err
}

func (c *Collector) listSecretPages(ctx context.Context, namespace string) ([]corev1.Secret, error) {
	var out []corev1.Secret
	for next := ""; ; {
		var list corev1.SecretList
		if err := c.Hub.List(ctx, &list, client.InNamespace(namespace), client.Limit(secretsPage), client.Continue(next)); err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return s.Type == "helm.sh/release.v1" })...)
		switch next = list.Continue; {
		case len(out) > maxSecrets:
			return nil, fmt.Errorf("there are more than %d", maxSecrets)
		case next == "":
			return out, nil
		}
	}
}

// secretNames returns the Secrets to which the pool and the bootstrap of a cluster refer.
func secretNames(related related) []types.NamespacedName {
	var out []types.NamespacedName
	add := func(namespace, name string) {
		if name != "" {
			out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	if p := related.pool; p != nil {
		for _, ref := range []*corev1.LocalObjectReference{p.Spec.PullSecretRef, p.Spec.InstallConfigSecretTemplateRef} {
			if ref != nil {
				add(p.Namespace, ref.Name)
			}
		}
	}
	if b := related.bootstrap; b != nil {
		for _, ref := range bootstrap.ListReferences(b.Spec.Steps) {
			if ref.Secret {
				add(b.Namespace, ref.Name)
			}
		}
	}
	return out
}

// describe returns an object with its kind, which a client does not set.
func describe(kind string, group string, o any) any {
	return withKind{APIVersion: group, Kind: kind, object: o}
}

// addHub adds the objects of the hub.
func addHub(b *diagnostics.Bundle, cd *hivev1.ClusterDeployment, related related) {
	hive, own := hivev1.GroupVersion.String(), v1alpha1.GroupVersion.String()
	for _, line := range diagnostics.Failures(cd.Status.Conditions) {
		b.AddNote("%s", line)
	}
	b.AddText("conditions.txt", diagnostics.FormatConditions(cd.Status.Conditions))
	b.AddObject("hub/clusterdeployment.yaml", describe("ClusterDeployment", hive, cd))
	if related.pool != nil {
		b.AddObject("hub/pool.yaml", describe("ClusterPool", hive, related.pool))
	}
	if related.claim != nil {
		b.AddObject("hub/claim.yaml", describe("ClusterClaim", hive, related.claim))
	}
	if related.policy != nil {
		b.AddObject("hub/poolpolicy.yaml", describe("PoolPolicy", own, related.policy))
	}
	if related.bootstrap != nil {
		b.AddObject("hub/bootstrap.yaml", describe("ClusterBootstrap", own, related.bootstrap))
	}
	var provisions []any
	for _, p := range related.provisions {
		name := fmt.Sprintf("install/attempt-%d.log", p.Spec.Attempt)
		if log := p.Spec.InstallLog; log != nil {
			b.AddLog(name, *log)
			p.Spec.InstallLog = nil // it is a file of its own
		}
		b.AddNote("install attempt %d is %s", p.Spec.Attempt, p.Spec.Stage)
		provisions = append(provisions, describe("ClusterProvision", hive, &p))
	}
	b.AddObject("hub/provisions.yaml", provisions...)
}

// addHubEvents adds the events of the hub about the cluster and what belongs to it.
func (c *Collector) addHubEvents(ctx context.Context, b *diagnostics.Bundle, cd *hivev1.ClusterDeployment, related related) {
	const name = "hub/events.txt"
	about := []client.Object{cd}
	if related.pool != nil {
		about = append(about, related.pool)
	}
	if related.claim != nil {
		about = append(about, related.claim)
	}
	for i := range related.provisions {
		about = append(about, &related.provisions[i])
	}
	var events []corev1.Event
	for _, o := range about {
		var list corev1.EventList
		err := c.Hub.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"involvedObject.name": o.GetName()}, client.Limit(maxEvents))
		if err != nil {
			b.AddGap(name, describeHubError(err))
			break
		}
		events = append(events, list.Items...)
	}
	slices.SortFunc(events, func(a, b corev1.Event) int { return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name)) })
	events = slices.CompactFunc(events, func(a, b corev1.Event) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	b.AddText(name, diagnostics.FormatEvents(events, maxEvents))
}

// prepareLogs finds the logs of the installer, the machines or the recipe, and returns a function that adds them.
func (c *Collector) prepareLogs(ctx context.Context, cd *hivev1.ClusterDeployment) func(*diagnostics.Bundle) {
	if c.FindLogs == nil {
		return func(*diagnostics.Bundle) {}
	}
	logs, err := c.FindLogs(ctx, cd)
	return func(b *diagnostics.Bundle) {
		for _, l := range logs {
			b.AddLog("logs/"+l.Name, l.Text)
		}
		if err != nil {
			b.AddGap("logs", err.Error())
		}
	}
}
