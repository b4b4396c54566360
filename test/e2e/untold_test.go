package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/install/job/installertest"
)

// A run in which much goes wrong, with a secret wherever one can be: pools, claims and
// broken clusters, inventories, installers that print what they have, and clouds that
// refuse an account and repeat it, or that are given an account which cannot be read.
func TestNoSecretIsTold(t *testing.T) {
	exe, err := installertest.BuildInstaller()
	if err != nil {
		t.Fatal(err)
	}
	cloud := installertest.Cloud(t.TempDir())
	h := own(t, "--installer", exe)
	s := &secrets{hub: h, ns: h.namespace(t), values: map[string]string{}}
	claims := s.pools(t)
	s.installs(t, cloud)
	s.refused(t)
	s.unreadable(t)
	s.used(t)

	t.Log("while all of it is there")
	s.everywhere(t)
	for _, c := range claims {
		h.delete(t, c)
		h.gone(t, c)
	}
	h.untold(t) // pods have ended
	t.Log("when claims and pods are gone")
	s.everywhere(t)
	s.files(t)
}

// secrets are what a run has planted, by what they are.
type secrets struct {
	*hub
	ns     string
	values map[string]string
}

// plant makes a secret that is found again.
func (s *secrets) plant(what string) string {
	s.values[what] = fmt.Sprintf("pl4nted%dx%s", len(s.values), rand.Text()[:12])
	return s.values[what]
}

// auths is a pull secret with a planted password.
func (s *secrets) auths(what string) string {
	return `{"auths":{"registry.example":{"auth":"` + s.plant(what) + `"}}}`
}

// pools has a pool of local clusters serve two claims, one of them after a standby turned
// out to be broken, and one with an inventory of which only the last entry is right.
func (s *secrets) pools(t *testing.T) (claims []*hivev1.ClusterClaim) {
	t.Helper()
	p := localPool(s.ns, "dev", 2, 1)
	p.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	p.Spec.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: "template"}
	s.create(t,
		secretOf(s.ns, "pull", hivev1.SecretKeyPullSecret, s.auths("the pull secret")),
		secretOf(s.ns, "template", hivev1.SecretKeyInstallConfig, "apiVersion: v1\npullSecret: '"+s.plant("the template's pull secret")+"'\n"), p)
	s.settled(t, p)
	for _, cd := range s.clusters(t, p) {
		if cd.Status.PowerState == hivev1.StatusHibernating {
			s.hurt(t, s.ns, cd.Name, machine.DiskLost)
		}
	}
	for _, name := range []string{"first", "second"} {
		c := claimOn(p, name)
		c.Spec.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "bot"}}
		s.create(t, c)
		for what, value := range s.credentials(t, s.served(t, c)) {
			s.values[name+": "+what] = value
		}
		claims = append(claims, c)
	}

	stock := localPool(s.ns, "stock", 1, 1)
	stock.Spec.InstallAttemptsLimit = ptr.To[int32](1)
	stock.Spec.Inventory = inventoryOf("occupied", "typo", "good")
	s.create(t,
		customization(s.ns, "occupied", add("/pullSecret", s.plant("a patch of what fails")), add("/platform/local/apiPort", squat(t))),
		customization(s.ns, "typo", replace("/pullSecrets", s.plant("a patch that does not apply"))),
		customization(s.ns, "good", add("/pullSecret", s.plant("a patch that applies"))), stock)
	s.settled(t, stock)
	s.entry(t, stock, "typo", hivev1.InventoryBrokenByConfiguration)
	return claims
}

// installs has an installer that prints what it is given make a cluster, and fail with two.
func (s *secrets) installs(t *testing.T, cloud installertest.Cloud) {
	t.Helper()
	s.values["the installer's kubeadmin password"] = "plant-ed0pw-aaaaa-bbbbb"
	s.values["a private key that the installer prints"] = installertest.PlantedKey
	s.made(t, s.ordered(t, s.ns, "ordered", cloud))

	if err := cloud.InjectFault("fail-masters", 2); err != nil {
		t.Fatal(err)
	}
	aws := secret(s.ns, "aws", map[string][]byte{
		"aws_access_key_id": []byte("AKIA" + strings.ToUpper(rand.Text()[:16])), "aws_secret_access_key": []byte(s.plant("the secret access key of AWS")),
	})
	s.values["the access key of AWS"] = string(aws.Data["aws_access_key_id"])
	gcp := secret(s.ns, "gcp", map[string][]byte{"osServiceAccount.json": s.account(t, "the installer's account of Google", "https://127.0.0.1:1")})
	s.create(t, aws, gcp)
	for name, platform := range map[string]hivev1.Platform{
		"aws": {AWS: raw(`{"region":"us-east-1","credentialsSecretRef":{"name":"aws"}}`)},
		"gcp": {GCP: raw(`{"region":"us-east-1","credentialsSecretRef":{"name":"gcp"}}`)},
	} {
		config := fmt.Sprintf("baseDomain: example.com\nmetadata: {name: %s}\nplatform: {%s: {region: us-east-1}}\npullSecret: '%s'\n", name, name, s.auths("the pull secret of "+name))
		cd := s.order(t, name, cloud, platform, config)
		s.conditioned(t, cd, hivev1.ClusterProvisionStopped, corev1.ConditionTrue)
	}
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// order creates a cluster for which the installer is to be called once.
func (s *secrets) order(t *testing.T, name string, cloud installertest.Cloud, platform hivev1.Platform, config string) *hivev1.ClusterDeployment {
	t.Helper()
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, BaseDomain: "example.com", Platform: platform, InstallAttemptsLimit: ptr.To[int32](1),
			Provisioning: &hivev1.Provisioning{
				ReleaseImage:           "quay.io/ocp-release:4.18.20-x86_64",
				InstallConfigSecretRef: &corev1.LocalObjectReference{Name: name + "-config"},
				InstallerEnv:           []corev1.EnvVar{{Name: installertest.Env, Value: string(cloud)}},
			},
		},
	}
	s.create(t, secretOf(s.ns, name+"-config", hivev1.SecretKeyInstallConfig, config), cd)
	return cd
}

// account is the JSON key of a service account of Google.
func (s *secrets) account(t *testing.T, what, tokens string) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	s.values[what] = string(bytes.Split(block, []byte("\n"))[3])
	out, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "client_email": "a@p.example", "private_key": string(block), "private_key_id": "1", "token_uri": tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parrot is a cloud, a cluster or a BMC that refuses whatever it is asked, and repeats it.
func parrot(w http.ResponseWriter, r *http.Request) {
	said, err := httputil.DumpRequest(r, true)
	if err != nil {
		said = []byte(err.Error())
	}
	if user, password, ok := r.BasicAuth(); ok {
		said = fmt.Appendf(said, "\nuser %s password %s", user, password)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that went away does not hear it
		"message": string(said), "error": map[string]any{"code": 401, "message": string(said), "title": string(said)}, "error_description": string(said),
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401,
	})
}

// refused has parrots for clouds, clusters and BMCs.
func (s *secrets) refused(t *testing.T) {
	t.Helper()
	open, closed := httptest.NewServer(http.HandlerFunc(parrot)), httptest.NewUnstartedServer(http.HandlerFunc(parrot))
	closed.Config.ErrorLog = nil
	closed.StartTLS()
	t.Cleanup(open.Close)
	t.Cleanup(closed.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: closed.Certificate().Raw})
	s.create(t, secret(s.ns, "ca", map[string][]byte{"ca.crt": ca}))
	plain := open.Listener.Addr().String()
	host, port, _ := strings.Cut(closed.Listener.Addr().String(), ":")
	for name, c := range map[string]struct{ platform, key, value string }{
		"openstack": {
			`{openstack: {cloud: o, credentialsSecretRef: {name: openstack-creds}}}`, "clouds.yaml",
			fmt.Sprintf("clouds: {o: {auth_type: v3applicationcredential, auth: {auth_url: 'http://%s/v3', application_credential_id: a, application_credential_secret: %s}}}",
				plain, s.plant("the secret of OpenStack")),
		},
		"vsphere": {
			fmt.Sprintf(`{vsphere: {credentialsSecretRef: {name: vsphere-creds}, certificatesSecretRef: {name: ca}, infrastructure: {vcenters: [{server: %s, port: %s, datacenters: [d]}]}}}`, host, port),
			"password", s.plant("the password of vSphere"),
		},
		"gcp":       {`{gcp: {region: us-east1, credentialsSecretRef: {name: gcp-creds}}}`, "osServiceAccount.json", string(s.account(t, "the account of Google", open.URL))},
		"baremetal": {`{baremetal: {}}`, "hosts.yaml", fmt.Sprintf("- {name: m, role: master, bmc: {address: 'redfish+http://%s/redfish/v1/Systems/1', username: u, password: %s}}", plain, s.plant("the password of a BMC"))},
	} {
		s.adopt(t, name, c.platform, closed.URL, ca, map[string][]byte{c.key: []byte(c.value), "username": []byte("u@vsphere.local")})
	}
	plane := s.apply(t, fmt.Sprintf(`
apiVersion: hotspare.io/v1alpha1
kind: DataPlane
metadata: {name: mine, namespace: %s}
spec: {provider: aws, region: r, instanceTypes: [standard], ownership: Registered, clusterRef: {kubeconfigSecret: {name: vsphere-kubeconfig}}}
`, s.ns))
	if plane.code != 0 {
		t.Fatal(plane.all())
	}
}

// unreadable has accounts of clouds that cannot be read, for they are broken in the midst
// of the secret.
func (s *secrets) unreadable(t *testing.T) {
	t.Helper()
	for name, c := range map[string]struct{ platform, key, value string }{
		"aws-torn":       {`{aws: {region: us-east-1, credentialsSecretRef: {name: aws-torn-creds}}}`, "aws_config", "[default]\n%s\n"},
		"azure-torn":     {`{azure: {region: r, credentialsSecretRef: {name: azure-torn-creds}}}`, "osServicePrincipal.json", `{"clientSecret": %s}`},
		"gcp-torn":       {`{gcp: {region: r, credentialsSecretRef: {name: gcp-torn-creds}}}`, "osServiceAccount.json", `{"private_key": %s}`},
		"openstack-torn": {`{openstack: {cloud: o, credentialsSecretRef: {name: openstack-torn-creds}}}`, "clouds.yaml", "clouds: {%s"},
		"baremetal-torn": {`{baremetal: {}}`, "hosts.yaml", "- bmc: {password: %s"},
		"vsphere-torn":   {`{vsphere: {vCenter: v.example, credentialsSecretRef: {name: vsphere-torn-creds}}}`, "vcenters", "- {password: %s"},
	} {
		value := fmt.Sprintf(c.value, s.plant("the torn account of "+name))
		s.adopt(t, name, c.platform, "https://127.0.0.1:1", nil, map[string][]byte{c.key: []byte(value)})
	}
}

// adopt creates a cluster that others have installed, and waits until hotspare has found
// out that it cannot see the machines.
func (s *secrets) adopt(t *testing.T, name, platform, api string, ca []byte, account map[string][]byte) {
	t.Helper()
	creds := name + "-creds"
	if strings.HasPrefix(name, "baremetal") {
		creds = name + "-bmc"
	}
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}], users: [{name: u, user: {token: %s}}]}`,
		api, base64.StdEncoding.EncodeToString(ca), s.plant("the token in the kubeconfig of "+name))
	s.create(t, secret(s.ns, creds, account), secretOf(s.ns, name+"-kubeconfig", hivev1.SecretKeyKubeconfig, kubeconfig))
	r := s.apply(t, fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  clusterName: %[2]s
  baseDomain: example.com
  installed: true
  preserveOnDelete: true
  clusterMetadata: {clusterID: c, infraID: %[2]s-12345, adminKubeconfigSecretRef: {name: %[2]s-kubeconfig}}
  platform: %[3]s
`, s.ns, name, platform))
	if r.code != 0 {
		t.Fatal(r.all())
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	eventually(t, "it is said what is wrong with "+name, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		for _, c := range cd.Status.Conditions {
			if c.Type == hivev1.ClusterReady && c.Status != corev1.ConditionTrue && c.Reason != "Initialized" {
				t.Logf("%s: %s: %s", name, c.Reason, strings.ReplaceAll(c.Message, "\n", " "))
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", cd.Status.Conditions)
	})
}

// used has a subject of the claims use a token, in ways that succeed and fail.
func (s *secrets) used(t *testing.T) {
	t.Helper()
	s.kubectl(t, "create", "serviceaccount", "bot", "-n", s.ns)
	token := strings.TrimSpace(s.kubectl(t, "create", "token", "bot", "-n", s.ns))
	s.values["the token of a claim's subject"] = token[strings.LastIndex(token, ".")+1:]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/apis/hive.openshift.io/v1/clusterpools?pretty=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{token, s.plant("a token that nobody made")} {
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // it is refused, one way or the other
		_ = res.Body.Close()
	}
}

// forms are those in which a value may appear: as it is, and within something that was
// encoded, at whatever offset.
func forms(value string) []string {
	out := []string{value}
	for skip := range 3 {
		padded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + value))
		out = append(out, strings.TrimRight(padded, "=")[4:len(value)])
	}
	return out
}

// noneIn checks that a text tells no secret.
func (s *secrets) noneIn(t *testing.T, where, text string) {
	t.Helper()
	if text == "" {
		t.Errorf("%s: nothing to look at", where)
	}
	for _, what := range slices.Sorted(maps.Keys(s.values)) {
		for i, form := range forms(s.values[what]) {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s tells %s (form %d): …%s…", where, what, i, text[max(0, at-200):min(len(text), at+60)])
				break
			}
		}
	}
	if at := strings.Index(text, "PRIVATE KEY-----"); at >= 0 {
		t.Errorf("%s tells a private key: %s", where, text[max(0, at-200):at])
	}
}
