package openstack

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/fault"
)

// where is the text that says where the credentials are.
var where = []string{"Secret clusters/os-creds", "key clouds.yaml", "store a clouds.yaml there with an application credential"}

func TestCloudsThatDo(t *testing.T) {
	credential := func(cloud, auth map[string]any) {
		clear(auth)
		auth["application_credential_id"], auth["application_credential_secret"] = "ac1", password
	}
	for name, change := range map[string]func(l *lab, cloud, auth map[string]any){
		"a user's password": func(*lab, map[string]any, map[string]any) {},
		"an application credential": func(l *lab, cloud, auth map[string]any) {
			credential(cloud, auth)
			auth["auth_url"], cloud["auth_type"] = l.URL+"/identity", "v3applicationcredential"
		},
		"an application credential without its type": func(l *lab, cloud, auth map[string]any) {
			credential(cloud, auth)
			auth["auth_url"] = l.URL + "/identity/v3"
		},
		"a user beside the credential": func(l *lab, cloud, auth map[string]any) {
			credential(cloud, auth)
			auth["auth_url"], auth["username"], auth["user_domain_name"] = l.URL+"/identity", user, "Default"
		},
		"a URL with a version": func(l *lab, _, auth map[string]any) { auth["auth_url"] = l.URL + "/identity/v3/" },
		"one domain for all": func(_ *lab, _, auth map[string]any) {
			delete(auth, "user_domain_name")
			delete(auth, "project_domain_name")
			auth["domain_name"] = "Default"
		},
		"a project's ID": func(_ *lab, _, auth map[string]any) {
			auth["project_id"] = project
			delete(auth, "project_domain_name")
		},
		"an interface in the old words":  func(_ *lab, cloud, _ map[string]any) { cloud["endpoint_type"] = "publicURL" },
		"an explicit type and interface": func(_ *lab, cloud, _ map[string]any) { cloud["auth_type"], cloud["interface"] = "v3password", "public" },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(0)
			l.secrets["os-creds"][secretKey] = l.clouds(func(cloud, auth map[string]any) { change(l, cloud, auth) })
			l.sees(t, ref, "master-0 Stopped")
		})
	}
}

func TestCloudsThatDoNot(t *testing.T) {
	without := func(key string) func(cloud, auth map[string]any) {
		return func(_, auth map[string]any) { delete(auth, key) }
	}
	for name, c := range map[string]struct {
		change func(cloud, auth map[string]any)
		says   string
	}{
		"a wrong password":             {func(_, auth map[string]any) { auth["password"] = password + "x" }, `Keystone rejects the credentials of cloud "lab"`},
		"another project":              {func(_, auth map[string]any) { auth["project_name"] = "p2" }, "Keystone rejects"},
		"no URL":                       {without("auth_url"), "has no auth.auth_url: hotspare reads no profiles"},
		"a URL that is none":           {func(_, auth map[string]any) { auth["auth_url"] = "keystone:5000" }, "not an HTTP URL"},
		"a URL with nothing behind it": {func(_, auth map[string]any) { auth["auth_url"] = auth["auth_url"].(string) + "/elsewhere/" }, "not the URL of a Keystone"},
		"no user":                      {without("username"), "no auth.username"},
		"no password":                  {without("password"), "neither auth.password nor auth.application_credential_secret"},
		"no domain of the user":        {without("user_domain_name"), "no auth.user_domain_name"},
		"no project":                   {without("project_name"), "no auth.project_id or auth.project_name"},
		"no domain of the project":     {without("project_domain_name"), "no auth.project_domain_name"},
		"a token":                      {func(cloud, _ map[string]any) { cloud["auth_type"] = "v3token" }, "auth_type that hotspare does not support"},
		"a program to ask":             {func(cloud, _ map[string]any) { cloud["auth_type"] = "v3adfspassword" }, "auth_type that hotspare does not support"},
		"an interface of its own":      {func(cloud, _ map[string]any) { cloud["interface"] = "private" }, "interface that is not public"},
		"a credential without secret":  {func(cloud, _ map[string]any) { cloud["auth_type"] = "v3applicationcredential" }, "no auth.application_credential_secret"},
		"a credential without ID":      {func(_, auth map[string]any) { auth["application_credential_secret"] = password }, "no auth.application_credential_id"},
		"a credential of whom": {func(_, auth map[string]any) {
			auth["application_credential_secret"] = password
			auth["application_credential_name"] = "x"
			delete(auth, "username")
		}, "without its user"},
		"a list for a text": {func(_, auth map[string]any) { auth["password"] = []string{password} }, "password is a array, want a string"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(0)
			l.secrets["os-creds"][secretKey] = l.clouds(c.change)
			for _, err := range l.all(t.Context(), ref) {
				mustSay(t, err, fault.Denied, append([]string{c.says}, where...)...)
			}
		})
	}
}

func TestSecretsThatDoNot(t *testing.T) {
	for name, c := range map[string]struct {
		data     map[string][]byte
		platform map[string]any
		says     []string
	}{
		"no such key":        {map[string][]byte{"other": []byte(password)}, nil, append(where, "missing or empty")},
		"no YAML":            {map[string][]byte{secretKey: []byte("\t" + password)}, nil, append(where, "not a clouds.yaml")},
		"no such cloud":      {nil, map[string]any{"cloud": "other"}, append(where, `cloud "other"`, "existing clouds: lab", "clusters/mine")},
		"no cloud":           {nil, map[string]any{"cloud": ""}, []string{"spec.platform.openstack.cloud", "clusters/mine", "Secret clusters/os-creds: lab"}},
		"no Secret named":    {nil, map[string]any{"credentialsSecretRef": nil}, []string{"clusters/mine", "spec.platform.openstack.credentialsSecretRef.name"}},
		"no Secret":          {nil, map[string]any{"credentialsSecretRef": map[string]any{"name": "none"}}, []string{"clusters/none"}},
		"no CA's Secret":     {nil, map[string]any{"certificatesSecretRef": map[string]any{"name": "none"}}, []string{"clusters/none", "certificates"}},
		"no CA in it":        {nil, map[string]any{"certificatesSecretRef": map[string]any{"name": "os-creds"}}, []string{"Secret clusters/os-creds", "no PEM certificate", "certificatesSecretRef"}},
		"no region":          {map[string][]byte{secretKey: []byte("three")}, nil, []string{`in region "three"`, "region_name and interface of cloud \"lab\"", "Secret clusters/os-creds"}},
		"a cloud that is 12": {nil, map[string]any{"cloud": 12}, []string{"spec.platform.openstack", "clusters/mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.cluster(0)
			switch {
			case string(c.data[secretKey]) == "three":
				l.secrets["os-creds"][secretKey] = l.clouds(func(cloud, _ map[string]any) { cloud["region_name"] = "three" })
			case c.data != nil:
				l.secrets["os-creds"] = c.data
			}
			for _, err := range l.all(t.Context(), refTo(infraID, c.platform)) {
				mustSay(t, err, fault.Denied, c.says...)
			}
		})
	}
}

// withTLS puts a TLS server in front of the cloud, with a certificate that no system trusts.
func (l *lab) withTLS(t *testing.T) *httptest.Server {
	t.Helper()
	front := httptest.NewTLSServer(l.sim)
	t.Cleanup(front.Close)
	l.URL = front.URL
	l.secrets["os-creds"][secretKey] = l.clouds(nil)
	return front
}

func TestCertificatesOfTheCloud(t *testing.T) {
	l := newLab(t)
	l.cluster(0)
	front := l.withTLS(t)
	for _, err := range l.all(t.Context(), refTo(infraID, nil)) {
		mustSay(t, err, fault.Denied, "certificate", "put the CA of the cloud into the Secret named by spec.platform.openstack.certificatesSecretRef", "clusters/mine")
	}
	l.secrets["os-ca"] = map[string][]byte{
		"any.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), "notes": []byte("none"),
	}
	l.sees(t, refTo(infraID, map[string]any{"certificatesSecretRef": map[string]any{"name": "os-ca"}}), "master-0 Stopped")
	l.secrets["os-creds"][secretKey] = l.clouds(func(cloud, _ map[string]any) { cloud["verify"] = false })
	l.sees(t, refTo(infraID, nil), "master-0 Stopped")
}

func TestTheCertificateAuthoritiesOfTheHubAreTrustedBesideTheCloudsOwn(t *testing.T) {
	l := newLab(t)
	l.cluster(0)
	front := l.withTLS(t)
	ref := refTo(infraID, nil)
	others := cabundletest.CertificatePEM(cabundletest.NewServer(t, http.NotFoundHandler()))
	var authorities cabundletest.Secret
	l.Actuator = New(l.secret, authorities.NewSource())
	refused := func(says ...string) {
		t.Helper()
		for _, err := range l.all(t.Context(), ref) {
			mustSay(t, err, fault.Denied, append(says, "certificate signed by unknown authority")...)
		}
	}
	authorities.SetContent(others)
	refused()
	authorities.SetContent([]byte("no PEM"))
	refused("key ca.crt of Secret " + cabundletest.Name.String())
	authorities.SetContent(cabundletest.CertificatePEM(front))
	l.sees(t, ref, "master-0 Stopped")
	l.secrets["os-ca"] = map[string][]byte{"any.crt": others}
	ref = refTo(infraID, map[string]any{"certificatesSecretRef": map[string]any{"name": "os-ca"}})
	l.sees(t, ref, "master-0 Stopped")
	authorities.SetContent(others)
	refused()
}

func TestPasswordsDoNotFollowRedirects(t *testing.T) {
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("something goes to another host: %s", r.URL)
	}))
	defer trap.Close()
	for _, path := range []string{"/auth/tokens", "/servers/detail"} {
		l := newLab(t)
		ref := l.cluster(0)
		l.failure = &failure{path: path, status: http.StatusTemporaryRedirect, header: trap.URL, body: "{}"}
		for _, err := range l.all(t.Context(), ref) {
			mustSay(t, err, fault.Denied, "status 307")
		}
	}
}

func TestNothingOfThisComputerIsUsed(t *testing.T) {
	l := newLab(t)
	l.cluster(0)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	must(t, os.WriteFile(file, l.clouds(nil), 0o600))
	for k, v := range map[string]string{
		"OS_CLIENT_CONFIG_FILE": file, "OS_CLOUD": "lab", "OS_AUTH_URL": l.URL + "/identity", "OS_USERNAME": user, "OS_PASSWORD": password,
		"OS_PROJECT_NAME": project, "OS_USER_DOMAIN_NAME": "Default", "OS_REGION_NAME": "one",
	} {
		t.Setenv(k, v)
	}
	l.secrets["os-creds"][secretKey] = []byte("clouds: {lab: {auth: {}}}")
	mustSay(t, l.Start(t.Context(), refTo(infraID, nil)), fault.Denied, "auth.auth_url")
	if len(l.calls) != 0 {
		t.Errorf("%v", l.calls)
	}
}

func TestANewPasswordCountsAtOnce(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	good := l.secrets["os-creds"][secretKey]
	l.secrets["os-creds"][secretKey] = []byte(strings.ReplaceAll(string(good), password, "something else"))
	mustSay(t, l.Start(t.Context(), ref), fault.Denied, where...)
	l.secrets["os-creds"][secretKey] = good
	must(t, l.Start(t.Context(), ref))
}

func TestACloudThatCannotBeReached(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	gone := httptest.NewServer(l.sim)
	gone.Close()
	l.secrets["os-creds"][secretKey] = l.clouds(func(_, auth map[string]any) { auth["auth_url"] = gone.URL })
	for _, err := range l.all(context.WithoutCancel(t.Context()), ref) {
		mustSay(t, err, fault.Unknown, "logging in to Keystone at "+gone.URL, "refused")
	}
}
