package vsphere

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

func TestBothShapesOfThePlatformNameCenters(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"the older one":              {`"vCenter":"a.example","datacenter":"dc1","defaultDatastore":"ds"`, "a.example"},
		"the newer one":              {`"infrastructure":{"vcenters":[{"server":"a.example","datacenters":["dc1"]},{"server":"b.example","port":8443}]}`, "a.example b.example:8443"},
		"failure domains":            {`"infrastructure":{"failureDomains":[{"server":"a.example"},{"server":"b.example"},{"server":"A.example"}]}`, "a.example b.example"},
		"each vCenter once":          {`"infrastructure":{"vcenters":[{"server":"a.example","port":443}],"failureDomains":[{"server":"a.example"}]}`, "a.example:443"},
		"the newer one wins":         {`"vCenter":"old.example","infrastructure":{"vcenters":[{"server":"a.example"}]}`, "a.example"},
		"none at all is refused":     {`"infrastructure":{"vcenters":[]}`, "spec.platform.vsphere of ClusterDeployment ns/c names no vCenter: set infrastructure.vcenters[].server, or vCenter"},
		"another shape is refused":   {`"vCenter":7`, "reading spec.platform.vsphere of ClusterDeployment ns/c: json: cannot unmarshal number into Go struct field section.vCenter of type string"},
		"no credentials are refused": {`"vCenter":"a.example","credentialsSecretRef":null`, "spec.platform.vsphere.credentialsSecretRef of ClusterDeployment ns/c names no Secret: name the one with the vCenter's credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := `{"credentialsSecretRef":{"name":"creds"},` + c.raw + `}`
			if strings.Contains(c.raw, "credentialsSecretRef") {
				raw = "{" + c.raw + "}"
			}
			s, err := parsePlatformSection(cloud.Ref{
				Cluster:  ktypes.NamespacedName{Namespace: "ns", Name: "c"},
				Platform: hivev1.Platform{VSphere: &runtime.RawExtension{Raw: []byte(raw)}},
			})
			var got []string
			for _, one := range s.listUniqueSites() {
				got = append(got, one.address)
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if (err != nil) != (fault.KindOf(err) == fault.Denied) || strings.Join(got, " ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestAnotherPlatformIsRefused(t *testing.T) {
	if _, err := parsePlatformSection(cloud.Ref{}); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
}

func TestAccountsOfASecret(t *testing.T) {
	list := "- vCenter: a.example\n  username: ua\n  password: pa\n- vCenter: B.example\n  username: ub\n  password: pb\n"
	for name, c := range map[string]struct {
		server string
		data   map[string]string
		want   string
	}{
		"an entry of the list":               {"a.example", map[string]string{"vCenters": list}, "ua pa key vCenters of Secret ns/creds"},
		"names are not case sensitive":       {"b.example", map[string]string{"vCenters": list}, "ub pb key vCenters of Secret ns/creds"},
		"the list in JSON":                   {"a.example", map[string]string{"vCenters": `[{"vCenter":"a.example","username":"ua","password":"pa"}]`}, "ua pa key vCenters of Secret ns/creds"},
		"one account for all":                {"a.example", map[string]string{"username": "u", "password": "p"}, "u p keys username and password of Secret ns/creds"},
		"one account for those not listed":   {"c.example", map[string]string{"vCenters": list, "username": "u", "password": "p"}, "u p keys username and password of Secret ns/creds"},
		"a vCenter that is not listed":       {"c.example", map[string]string{"vCenters": list}, "Secret ns/creds has no account for vCenter c.example: add an entry with vCenter, username and password to its key vCenters, or set its keys username and password"},
		"an empty Secret":                    {"a.example", nil, "Secret ns/creds has no account for vCenter a.example: add an entry with vCenter, username and password to its key vCenters, or set its keys username and password"},
		"half an account":                    {"a.example", map[string]string{"username": "u"}, "keys username and password of Secret ns/creds: the account for vCenter a.example needs both username and password: add what is missing"},
		"what is no list is not quoted back": {"a.example", map[string]string{"vCenters": "s3cret"}, "key vCenters of Secret ns/creds is not a list of vCenter, username and password in YAML or JSON: correct it"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, val := range c.data {
				data[k] = []byte(val)
			}
			got, err := centerFromSecret(site{server: c.server}, ktypes.NamespacedName{Namespace: "ns", Name: "creds"}, data)
			text := fmt.Sprintf("%s %s %s", got.username, got.password, got.where)
			if err != nil {
				text = err.Error()
			}
			if (err != nil) != (fault.KindOf(err) == fault.Denied) || text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestSecretsThatAreMissingOrHoldNoCertificateAreTold(t *testing.T) {
	h := &hub{data: map[string]map[string]string{"creds": {"username": "u", "password": "p"}, "ca": {"ca.crt": "nonsense"}}}
	p := New(h.secrets, nil)
	for secret, want := range map[string]string{"ca": "no PEM certificate", "absent": "Secret ns/absent does not exist"} {
		ref := refWith("c-12345", map[string]any{"vCenter": "a.example", "credentialsSecretRef": secretReference{"creds"}, "certificatesSecretRef": secretReference{secret}})
		if _, err := p.Observe(t.Context(), ref); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", secret, err)
		}
	}
}
