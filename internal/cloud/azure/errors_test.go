package azure

import (
	"context"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// mustSay checks an error's kind, and that it contains words.
func mustSay(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := fault.KindOf(err); got != kind {
		t.Errorf("%s, want %s: %v", got, kind, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// mustHide checks that an error contains no secrets.
func mustHide(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{password, tokenPrefix} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in: %v", secret, err)
		}
	}
}

// all makes all three calls.
func (l *lab) all(ctx context.Context, ref cloud.Ref) []error {
	_, err := l.Observe(ctx, ref)
	return []error{err, l.Start(ctx, ref), l.Stop(ctx, ref)}
}

// where is the text that says where the credentials are.
var where = []string{"Secret clusters/azure-creds", "key osServicePrincipal.json", "az ad sp credential reset"}

func TestCredentialsThatAzureRefuses(t *testing.T) {
	with := func(old, changed string) func(*lab) {
		return func(l *lab) {
			l.secrets["azure-creds"][secretKey] = []byte(strings.Replace(principal, old, changed, 1))
		}
	}
	for name, c := range map[string]struct {
		change func(*lab)
		says   string
	}{
		"the secret has expired":         {func(l *lab) { l.refused = true }, "AADSTS7000222"},
		"the server repeats what it got": {func(l *lab) { l.refused = true; l.echo = true }, "AADSTS7000222"},
		"the secret is wrong":            {with(password, "wrong-"+password[:9]), "AADSTS7000215"},
		"the principal does not exist":   {with(clientID, "who"), "unauthorized_client"},
		"the tenant does not exist":      {with(tenantID, "where/../else"), "AADSTS90002"},
		"the token does not work":        {func(l *lab) { l.revoked = true }, "rejects the token"},
		"the token server forbids":       {func(l *lab) { l.status = 403 }, "status 403"},
		"there is no such key in it":     {func(l *lab) { l.secrets["azure-creds"] = map[string][]byte{"x": nil} }, "missing or empty"},
		"it is no JSON":                  {func(l *lab) { l.secrets["azure-creds"][secretKey] = []byte(password) }, "not the JSON"},
		"it has no client":               {with("clientId", "x"), "clientId"},
		"it has no secret":               {with("clientSecret", "x"), "clientSecret"},
		"it has no tenant":               {with("tenantId", "x"), "tenantId"},
		"it has no subscription":         {with("subscriptionId", "x"), "subscriptionId"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(t, 1)
			c.change(l)
			all := l.all(t.Context(), ref)
			for _, err := range all {
				mustSay(t, err, fault.Denied, append([]string{c.says}, where...)...)
				mustHide(t, err)
			}
			if _, again := l.Observe(t.Context(), ref); again.Error() != all[0].Error() {
				t.Errorf("not the same words each time:\n%v\n%v", all[0], again)
			}
		})
	}
}

func TestTheNamesInThePrincipalAreOfAnyCase(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	text := strings.NewReplacer("clientId", "ClientID", "clientSecret", "CLIENTSECRET", "tenantId", "tenantid").Replace(principal)
	l.secrets["azure-creds"][secretKey] = []byte(text)
	l.observe(t, ref)
}

func TestAClusterWithoutCredentialsIsTold(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	ref.Platform.Azure.Raw = []byte(`{"region":"eastus"}`)
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, "clusters/mine", "spec.platform.azure.credentialsSecretRef")
	}
}

func TestCredentialsOfThisComputerAreNotUsed(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	for k, v := range map[string]string{"CLIENT_ID": clientID, "CLIENT_SECRET": password, "TENANT_ID": tenantID, "SUBSCRIPTION_ID": subscription} {
		t.Setenv("AZURE_"+k, v)
	}
	l.secrets["azure-creds"][secretKey] = nil
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, where...)
	}
}

func TestATokenServerInTroubleIsTriedLater(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		l := newLab(t)
		ref := l.cluster(t, 1)
		l.status = status
		for _, err := range l.all(t.Context(), ref) {
			mustSay(t, err, fault.Wait, clientID)
		}
	}
}

func TestErrorsOfMachines(t *testing.T) {
	for name, c := range map[string]struct {
		failure
		want fault.Kind
	}{
		"no room":                           {failure{409, "AllocationFailed", "no capacity in the cluster", ""}, fault.Capacity},
		"no room in the zone":               {failure{409, "ZonalAllocationFailed", "none in zone 1", ""}, fault.Capacity},
		"the size is not to be had":         {failure{409, "SkuNotAvailable", "not in eastus", ""}, fault.Capacity},
		"a quota of cores is used up":       {failure{409, "OperationNotAllowed", "exceeding approved Total Regional Cores quota", ""}, fault.Capacity},
		"another operation runs":            {failure{409, "Conflict", "in progress", ""}, fault.Wait},
		"too many calls":                    {failure{429, "TooManyRequests", "slow down", "9"}, fault.Wait},
		"a lock of the group":               {failure{409, "ScopeLocked", "locked", ""}, fault.Denied},
		"not allowed":                       {failure{403, "AuthorizationFailed", "no action start", ""}, fault.Denied},
		"the request is wrong":              {failure{400, "InvalidParameter", "no such field", ""}, fault.Denied},
		"a server fails":                    {failure{500, "InternalExecutionError", "oh", ""}, fault.Wait},
		"a server is down and says nothing": {failure{503, "", "", ""}, fault.Wait},
		"something new":                     {failure{418, "Teapot", "short and stout", ""}, fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.create(infra, 0)
			l.fail, l.echo = &c.failure, true
			err := l.Start(t.Context(), ref)
			mustSay(t, err, c.want, "starting virtual machine "+infra+"-master-0", c.code, c.message)
			mustHide(t, err)
			if c.after == "9" && fault.RetryAfter(err).Seconds() != 9 {
				t.Errorf("after %s", fault.RetryAfter(err))
			}
		})
	}
}
