package adopt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// annotationAdopting is on a namespace that hotspare adopt created for a spare of a pool; its value is the
// pool. Only such a namespace becomes one of the pool: it is deleted with the cluster.
const annotationAdopting = "hotspare.io/adopting-for-pool"

// defaultBaseDomain is the DNS domain of clusters whose API server has no domain name.
const defaultBaseDomain = "cluster.local"

// adoption contains the objects that adopt one cluster, in the order in which they are written.
type adoption struct {
	// Namespace is nil unless the cluster becomes a spare of a pool.
	Namespace *corev1.Namespace
	// Secrets do not include those that exist already where the cluster needs them.
	Secrets []*corev1.Secret
	Cluster *hivev1.ClusterDeployment
}

// listObjects returns the objects in the order in which they are written.
func (a adoption) listObjects() []client.Object {
	var out []client.Object
	if a.Namespace != nil {
		out = append(out, a.Namespace)
	}
	for _, s := range a.Secrets {
		out = append(out, s)
	}
	return append(out, a.Cluster)
}

// platformFlags are the settings of spec.platform that the flags set.
type platformFlags struct {
	platform, region, cloud, vcenter, resourceGroup string
	credentials, certificates                       string
}

// platformRule says which flags a platform needs and which others it takes.
type platformRule struct{ needs, takes []string }

// platformRules are the platforms whose clusters can be adopted with a kubeconfig. See docs/platforms.
var platformRules = map[string]platformRule{
	"aws":       {needs: []string{"region", "credentials-secret"}},
	"azure":     {needs: []string{"credentials-secret"}, takes: []string{"region", "resource-group"}},
	"baremetal": {},
	"gcp":       {needs: []string{"region", "credentials-secret"}},
	"none":      {},
	"openstack": {needs: []string{"cloud", "credentials-secret"}, takes: []string{"certificates-secret"}},
	"vsphere":   {needs: []string{"vcenter", "credentials-secret"}, takes: []string{"certificates-secret"}},
}

// platformNames are the keys of platformRules, for help and completion, and providerNames those on which
// Cluster API runs machines.
var (
	platformNames = []string{"aws", "azure", "baremetal", "gcp", "none", "openstack", "vsphere"}
	providerNames = []string{"aws", "azure", "gcp", "openstack", "vsphere"}
)

// settingFlags are the flags that set platformFlags, without the platform itself.
var settingFlags = []string{"region", "cloud", "vcenter", "resource-group", "credentials-secret", "certificates-secret"}

func (f platformFlags) values() map[string]string {
	return map[string]string{
		"region": f.region, "cloud": f.cloud, "vcenter": f.vcenter, "resource-group": f.resourceGroup,
		"credentials-secret": f.credentials, "certificates-secret": f.certificates,
	}
}

// validate returns an error that names a missing flag, or one that the platform does not have. flag is
// the flag that selects the platform: platform or provider; names are its values.
func (f platformFlags) validate(flag string, names []string) error {
	if !slices.Contains(names, f.platform) {
		return fmt.Errorf("--%s %q is not supported: use one of %s", flag, f.platform, strings.Join(names, ", "))
	}
	rule, values := platformRules[f.platform], f.values()
	for _, name := range rule.needs {
		if values[name] == "" {
			return fmt.Errorf("--%s %s needs --%s", flag, f.platform, name)
		}
	}
	for _, name := range settingFlags {
		if values[name] != "" && !slices.Contains(rule.needs, name) && !slices.Contains(rule.takes, name) {
			return fmt.Errorf("--%s does not apply to %s %s: remove the flag", name, flag, f.platform)
		}
	}
	return nil
}

// selectsByInfraID reports whether the machines of a platform are found by the infraID that their
// installer has marked them with.
func (f platformFlags) selectsByInfraID() bool {
	return f.platform != "none" && f.platform != "baremetal"
}

// secretNames returns the Secrets that hotspare reads to reach the machines of a cluster.
func (f platformFlags) secretNames(cluster string) []string {
	var out []string
	for _, name := range []string{f.credentials, f.certificates} {
		if name != "" {
			out = append(out, name)
		}
	}
	if f.platform == "baremetal" {
		out = append(out, cluster+"-bmc")
	}
	return out
}

// settings returns the platform with its settings, as in spec.platform.
func (f platformFlags) settings() map[string]any {
	settings := map[string]any{}
	for key, value := range map[string]string{"region": f.region, "cloud": f.cloud, "vCenter": f.vcenter} {
		if value != "" {
			settings[key] = value
		}
	}
	for key, name := range map[string]string{"credentialsSecretRef": f.credentials, "certificatesSecretRef": f.certificates} {
		if name != "" {
			settings[key] = map[string]any{"name": name}
		}
	}
	return map[string]any{f.platform: settings}
}

// build returns spec.platform, and the part of spec.clusterMetadata that belongs to the platform.
func (f platformFlags) build(infraID string) (hivev1.Platform, *runtime.RawExtension, error) {
	var platform hivev1.Platform
	raw, err := json.Marshal(f.settings())
	if err != nil {
		return platform, nil, fmt.Errorf("writing spec.platform: %w", err)
	}
	if err := json.Unmarshal(raw, &platform); err != nil {
		return platform, nil, fmt.Errorf("writing spec.platform: %w", err)
	}
	if f.platform != "azure" {
		return platform, nil, nil
	}
	group := cmp.Or(f.resourceGroup, infraID+"-rg") // openshift-install's default
	raw, err = json.Marshal(map[string]any{"azure": map[string]any{"resourceGroupName": group}})
	if err != nil {
		return platform, nil, fmt.Errorf("writing spec.clusterMetadata.platform: %w", err)
	}
	return platform, &runtime.RawExtension{Raw: raw}, nil
}

// clusterFacts are what a ClusterDeployment says about an adopted cluster.
type clusterFacts struct {
	name, namespace         string
	clusterName, baseDomain string
	clusterID, infraID      string
	kubeconfigSecret        string
	hibernateAfter          *hivev1.Duration
	platform                hivev1.Platform
	metadata                *runtime.RawExtension
	pool                    *hivev1.ClusterPool
}

// newCluster returns the ClusterDeployment of an adopted cluster. Deleting it keeps the cluster.
func newCluster(f clusterFacts) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.name},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: f.clusterName, BaseDomain: f.baseDomain, Platform: f.platform,
			Installed: true, PreserveOnDelete: true, HibernateAfter: f.hibernateAfter,
			ClusterMetadata: &hivev1.ClusterMetadata{
				ClusterID: f.clusterID, InfraID: f.infraID, Platform: f.metadata,
				AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: f.kubeconfigSecret},
			},
		},
	}
	if p := f.pool; p != nil {
		cd.Labels = map[string]string{hivev1.LabelPoolName: p.Name, hivev1.LabelPoolNamespace: p.Namespace}
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: p.Namespace, PoolName: p.Name}
	}
	return cd
}

// newSecret returns a Secret of an adopted cluster.
func newSecret(cd *hivev1.ClusterDeployment, name, holds string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cd.Namespace, Name: name, Labels: map[string]string{
			hivev1.LabelClusterDeployment: cd.Name, hivev1.LabelSecretType: holds,
		}},
		Data: data,
	}
}

// newPoolNamespace returns the namespace of an adopted spare, without the labels of its pool: the
// namespace of a pool's cluster that does not exist is deleted, so the labels come after the Secrets.
func newPoolNamespace(name string, p *hivev1.ClusterPool) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		annotationAdopting: client.ObjectKeyFromObject(p).String(),
	}}}
}

// labelPoolNamespace marks a namespace as that of a cluster of the pool.
func labelPoolNamespace(ns *corev1.Namespace, p *hivev1.ClusterPool) {
	metav1.SetMetaDataLabel(&ns.ObjectMeta, hivev1.LabelPoolName, p.Name)
	metav1.SetMetaDataLabel(&ns.ObjectMeta, hivev1.LabelPoolNamespace, p.Namespace)
	metav1.SetMetaDataLabel(&ns.ObjectMeta, hivev1.LabelNamespacePoolName, p.Name)
}

// checkName returns an error unless name can be that of a ClusterDeployment, a namespace and the value of
// a label.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%.70q cannot be the name of the cluster: use at most %d lower-case letters, digits and \"-\", starting and ending with a letter or digit",
			name, validation.DNS1123LabelMaxLength)
	}
	return nil
}

// checkPool returns why a cluster cannot become a spare of the pool; nil if it can.
func checkPool(p *hivev1.ClusterPool) error {
	switch {
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("pool %s is being deleted: choose another pool", p.Name)
	case len(p.Spec.Inventory) > 0:
		return fmt.Errorf("pool %s has an inventory, and an existing cluster has none of its customizations: choose a pool without spec.inventory", p.Name)
	case hivev1.IsTrue(p.Spec.Annotations, hivev1.AnnotationFake):
		return fmt.Errorf("pool %s has fake clusters only: choose a pool of real clusters", p.Name)
	case p.Spec.MaxSize != nil && *p.Spec.MaxSize == 0:
		return fmt.Errorf("spec.maxSize of pool %s is 0: raise it or choose another pool", p.Name)
	case p.Spec.Size > 0 && p.Status.Size >= p.Spec.Size:
		return fmt.Errorf("pool %s has its %s already and would delete one of those that it created: raise spec.size first", p.Name, humanize.FormatCount(int(p.Spec.Size), "spare"))
	}
	return nil
}

// domainOf returns the base domain of a cluster by the name of its API server: example.com for
// https://api.prod.example.com:6443 of cluster prod, and defaultBaseDomain for an address.
func domainOf(server, clusterName string) string {
	u, err := url.Parse(server)
	if err != nil || net.ParseIP(u.Hostname()) != nil || !strings.Contains(u.Hostname(), ".") {
		return defaultBaseDomain
	}
	host := strings.ToLower(u.Hostname())
	if domain, found := strings.CutPrefix(host, "api."+clusterName+"."); found {
		return domain
	}
	_, domain, _ := strings.Cut(host, ".")
	if !strings.Contains(domain, ".") {
		return host
	}
	return domain
}

// buildProviders returns spec.platform.capi.providers.
func (f platformFlags) buildProviders() (*hivev1.CAPIProviders, error) {
	raw, err := json.Marshal(f.settings())
	if err != nil {
		return nil, fmt.Errorf("writing spec.platform.capi.providers: %w", err)
	}
	var out hivev1.CAPIProviders
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("writing spec.platform.capi.providers: %w", err)
	}
	return &out, nil
}
