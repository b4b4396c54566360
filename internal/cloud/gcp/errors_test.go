package gcp

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
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

// planted are parts of the private key, of tokens and of assertions.
func planted() []string {
	out := []string{"BEGIN PRIVATE KEY", tokenPrefix, "eyJ"}
	for line := range strings.SplitSeq(pemOf(key()), "\n") {
		if len(line) > 8 && !strings.Contains(line, "PRIVATE KEY") {
			out = append(out, line)
		}
	}
	return out
}

// mustHide checks that an error contains no secrets.
func mustHide(t *testing.T, err error) {
	t.Helper()
	for _, secret := range planted() {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in: %v", secret, err)
		}
	}
}

// where is the text that says where the credentials are.
var where = []string{"Secret clusters/gcp-creds", "key osServiceAccount.json", "gcloud iam service-accounts keys create"}

func TestCredentialsThatGoogleRefuses(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*lab)
		says   string
	}{
		"the key was taken away":           {func(l *lab) { l.tokens.refused = true }, "Invalid JWT Signature"},
		"the server repeats what it got":   {func(l *lab) { l.tokens.refused = true; l.tokens.echo = true }, "invalid_grant"},
		"it is another account's key":      {func(l *lab) { l.secret[secretKey] = l.account(map[string]string{"private_key": pemOf(other)}) }, "Invalid JWT Signature"},
		"the account does not exist":       {func(l *lab) { l.secret[secretKey] = l.account(map[string]string{"client_email": "who@example.com"}) }, "account not found"},
		"the token does not work":          {func(l *lab) { l.tokens.revoked = true }, "rejects the token"},
		"the token server forbids":         {func(l *lab) { l.tokens.status = 403 }, "status 403"},
		"there is no such key in it":       {func(l *lab) { l.secret = map[string][]byte{"other": []byte("x")} }, "missing or empty"},
		"it is no JSON":                    {func(l *lab) { l.secret[secretKey] = []byte(pemOf(key())) }, "not the JSON"},
		"it is of a kind that runs things": {func(l *lab) { l.secret[secretKey] = l.account(map[string]string{"type": "external_account"}) }, "service_account"},
		"it names no project":              {func(l *lab) { l.secret[secretKey] = l.account(map[string]string{"project_id": ""}) }, "project_id"},
		"its private key is none":          {func(l *lab) { l.secret[secretKey] = l.account(map[string]string{"private_key": pemOf(key())[:99]}) }, "not a private key in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(t, 1)
			c.change(l)
			for _, err := range l.all(t.Context(), ref) {
				mustSay(t, err, fault.Denied, append([]string{c.says}, where...)...)
				mustHide(t, err)
			}
		})
	}
}

// all makes all three calls.
func (l *lab) all(ctx context.Context, ref cloud.Ref) []error {
	_, err := l.Observe(ctx, ref)
	return []error{err, l.Start(ctx, ref), l.Stop(ctx, ref)}
}

func TestAnAccountWithoutPermissionsIsNamed(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	l.tokens.forbidden = true
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, email, "compute.instances.list", "Secret clusters/gcp-creds", "give service account")
		mustHide(t, err)
	}
}

func TestAClusterWithoutCredentialsIsTold(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	ref.Platform.GCP.Raw = []byte(`{"region":"us-east1"}`)
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, "clusters/mine", "spec.platform.gcp.credentialsSecretRef")
	}
}

func TestCredentialsOfThisComputerAreNotUsed(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, l.account(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	l.tokens.refused = true
	l.secret[secretKey] = nil
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, where...)
	}
}

func TestATokenServerInTroubleIsTriedLater(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		l := newLab(t)
		ref := l.cluster(t, 1)
		l.tokens.status = status
		for _, err := range l.all(t.Context(), ref) {
			mustSay(t, err, fault.Wait, email)
		}
	}
}

func TestErrorsOfInstances(t *testing.T) {
	for name, c := range map[string]struct {
		failure
		want fault.Kind
	}{
		"too many calls":                       {failure{429, "rateLimitExceeded", "slow down", false}, fault.Wait},
		"too many calls of this account":       {failure{403, "userRateLimitExceeded", "slow down", false}, fault.Wait},
		"a quota is used up":                   {failure{403, "quotaExceeded", "Quota 'CPUS' exceeded", false}, fault.Capacity},
		"the zone is full":                     {failure{503, "ZONE_RESOURCE_POOL_EXHAUSTED", "no n2-standard-4", false}, fault.Capacity},
		"the zone is full, says the operation": {failure{200, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "no n2-standard-4", true}, fault.Capacity},
		"the operation fails otherwise":        {failure{200, "CONDITION_NOT_MET", "no", true}, fault.Unknown},
		"it is busy":                           {failure{400, "resourceNotReady", "being stopped", false}, fault.Wait},
		"somebody else writes":                 {failure{409, "conflict", "changed", false}, fault.Wait},
		"the request is wrong":                 {failure{400, "invalid", "no such field", false}, fault.Denied},
		"not allowed":                          {failure{403, "forbidden", "Required 'compute.instances.start'", false}, fault.Denied},
		"a server is down":                     {failure{503, "backendError", "", false}, fault.Wait},
		"a server fails":                       {failure{500, "internalError", "oh", false}, fault.Wait},
		"something new":                        {failure{418, "teapot", "short and stout", false}, fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newLab(t), refTo(infra, "")
			l.add(infra, infra+"-master-0", zones[0], "TERMINATED")
			l.fail = &c.failure
			err := l.Start(t.Context(), ref)
			mustSay(t, err, c.want, "starting instance "+infra+"-master-0", c.message)
			if c.want == fault.Wait && fault.RetryAfter(err) != busyDelay {
				t.Errorf("after %s", fault.RetryAfter(err))
			}
		})
	}
}

func TestATokenThatGoogleRepeatsIsNotShown(t *testing.T) {
	l, ref := newLab(t), refTo(infra, "")
	l.add(infra, infra+"-master-0", zones[0], "TERMINATED")
	l.fail, l.tokens.echo = &failure{400, "invalid", "what is this", false}, true
	err := l.Start(t.Context(), ref)
	mustSay(t, err, fault.Denied, "what is this")
	mustHide(t, err)
}

func TestATokenServerThatHangsHoldsUpNobodyWhoHasLeft(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1)
	l.tokens.hung = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-l.tokens.hung; cancel() }()
	if _, err := l.Observe(ctx, ref); !errors.Is(err, context.Canceled) {
		t.Errorf("returned %v", err)
	}
}
