package aws

import (
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/fault"
)

const roleARN = "arn:aws:iam::123456789012:role/hotspare"

// session is a key that needs a session token.
var session = sdk.Credentials{AccessKeyID: "ASIAPLANTED0000002", SecretAccessKey: "planted-secret-2", SessionToken: "planted-token-2"}

func TestCredentialsThatAreGood(t *testing.T) {
	for name, secret := range map[string]map[string]string{
		"a key":                      {"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": key.SecretAccessKey},
		"a key with a session token": {"aws_access_key_id": session.AccessKeyID, "aws_secret_access_key": session.SecretAccessKey, "aws_session_token": session.SessionToken},
		"a file":                     {"aws_config": "# ours\n[default]\naws_access_key_id = " + key.AccessKeyID + " # comment\naws_secret_access_key=" + key.SecretAccessKey + "\n"},
		"a file comes before keys": {
			"aws_config":        "[default]\naws_access_key_id = " + key.AccessKeyID + "\naws_secret_access_key=" + key.SecretAccessKey,
			"aws_access_key_id": "AKIAOTHER", "aws_secret_access_key": "x",
		},
		"a file with a role": {
			"aws_config": "[profile source]\naws_access_key_id = " + key.AccessKeyID + "\naws_secret_access_key=" + key.SecretAccessKey +
				"\n[default]\nrole_arn = " + roleARN + "\nsource_profile = source\nexternal_id = ext",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ec2.AddAccessKey(session)
			l.ec2.AllowRole(roleARN, "ext")
			l.workers(infraID, 1)
			l.secrets[types.NamespacedName{Namespace: "ns", Name: "aws-creds"}] = secret
			if got := l.observe(t, ref(t, infraID)); len(got) != 1 {
				t.Errorf("saw %v", got)
			}
		})
	}
}

func TestCredentialsThatAreNot(t *testing.T) {
	for name, c := range map[string]struct {
		secret map[string]string
		says   string
	}{
		"no key":                         {map[string]string{"other": "x"}, "set both"},
		"half a key":                     {map[string]string{"aws_access_key_id": key.AccessKeyID}, "set both"},
		"an empty key":                   {map[string]string{"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": " \n"}, "set both"},
		"a program in a key":             {map[string]string{"credential_process": "planted-secret"}, "credential_process of profile default is not allowed"},
		"a program in a file":            {map[string]string{"aws_config": "[default]\nCredential_Process = planted-secret"}, "credential_process of profile default is not allowed"},
		"a program in another profile":   {map[string]string{"aws_config": "[profile a]\ncredential_process = planted-secret"}, "credential_process of profile a is not allowed"},
		"a file of the hub":              {map[string]string{"aws_config": "[default]\nrole_arn=a\nweb_identity_token_file = /etc/shadow"}, "web_identity_token_file of profile default is not allowed"},
		"the hub's own instance profile": {map[string]string{"aws_config": "[default]\nrole_arn=a\ncredential_source = Ec2InstanceMetadata"}, "credential_source of profile default is not allowed"},
		"a role without a source":        {map[string]string{"aws_config": "[default]\nrole_arn=a"}, "needs a source_profile"},
		"a chain of roles":               {map[string]string{"aws_config": "[default]\nrole_arn=a\nsource_profile=b\n[b]\nrole_arn=c\nsource_profile=d"}, "assumes a role itself"},
		"a line that is none":            {map[string]string{"aws_config": "[default]\nplanted-secret"}, "line 2 of aws_config has no ="},
		"a line that is nowhere":         {map[string]string{"aws_config": "aws_secret_access_key=planted-secret"}, "line 1 of aws_config precedes"},
		"a section without end":          {map[string]string{"aws_config": "[planted-secret"}, "line 1 of aws_config"},
		"a wrong secret":                 {map[string]string{"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": "planted-secret-wrong"}, "AuthFailure"},
		"an unknown key":                 {map[string]string{"aws_access_key_id": "AKIAplanted-secret", "aws_secret_access_key": "planted-secret"}, "AuthFailure"},
		"without its session token":      {map[string]string{"aws_access_key_id": session.AccessKeyID, "aws_secret_access_key": session.SecretAccessKey}, "AuthFailure"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ec2.AddAccessKey(session)
			l.secrets[types.NamespacedName{Namespace: "ns", Name: "aws-creds"}] = c.secret
			_, err := l.Observe(t.Context(), ref(t, infraID))
			wantDenied(t, err, c.says, "aws-creds", "namespace ns")
		})
	}
}

// wantDenied checks that an error is fault.Denied, contains words and no secret.
func wantDenied(t *testing.T, err error, words ...string) {
	t.Helper()
	if fault.KindOf(err) != fault.Denied {
		t.Fatalf("got %v, which is %v", err, fault.KindOf(err))
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), "planted") {
		t.Errorf("a secret is in: %v", err)
	}
}

func TestWhatThePlatformSays(t *testing.T) {
	creds := map[string]any{"name": "aws-creds"}
	assume := map[string]any{"roleARN": roleARN, "externalID": "ext"}
	for name, c := range map[string]struct {
		platform map[string]any
		says     string
	}{
		"no region":                       {map[string]any{"credentialsSecretRef": creds}, "spec.platform.aws.region of ClusterDeployment ns/c"},
		"no credentials":                  {map[string]any{"region": "us-east-1"}, "spec.platform.aws.credentialsSecretRef of ClusterDeployment ns/c"},
		"a role and nobody to assume it":  {map[string]any{"region": "us-east-1", "credentialsAssumeRole": assume}, "spec.platform.aws.credentialsAssumeRole of ClusterDeployment ns/c"},
		"a region that is of other shape": {map[string]any{"region": 1}, "spec.platform.aws of ClusterDeployment ns/c"},
		"a Secret that is not there":      {map[string]any{"region": "us-east-1", "credentialsSecretRef": map[string]any{"name": "lost"}}, "ns/lost"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newLab(t).Observe(t.Context(), refOf(t, infraID, c.platform))
			wantDenied(t, err, c.says)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		_, err := newLab(t).Observe(t.Context(), cloud.Ref{InfraID: infraID})
		wantDenied(t, err, "spec.platform.aws.region")
	})
}

func TestARoleIsAssumedWithTheHubsCredentials(t *testing.T) {
	provider := types.NamespacedName{Namespace: "hub", Name: "provider"}
	withRole := func(t *testing.T, external string) cloud.Ref {
		t.Helper()
		return refOf(t, infraID, map[string]any{"region": "us-gov-west-1", "credentialsAssumeRole": map[string]any{"roleARN": roleARN, "externalID": external}})
	}
	l := newLab(t, WithServiceProvider(provider))
	l.ec2.AllowRole(roleARN, "ext")
	l.workers(infraID, 1)
	l.secrets[provider] = map[string]string{"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": key.SecretAccessKey}
	if err := l.Start(t.Context(), withRole(t, "ext")); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(l.ec2.AcceptedCalls(), ", "), "AssumeRole, DescribeInstances, StartInstances"; !strings.HasPrefix(got, want) {
		t.Errorf("calls: %s, want %s", got, want)
	}
	_, err := l.Observe(t.Context(), withRole(t, "wrong"))
	wantDenied(t, err, "AccessDenied", "Secret provider of namespace hub", roleARN)

	l.ec2.ExpireAllKeys()
	_, err = l.Observe(t.Context(), withRole(t, "ext"))
	wantDenied(t, err, "ExpiredToken", "Secret provider of namespace hub")
}

func TestWhatARoleGotIsNotTold(t *testing.T) {
	l := newLab(t)
	l.ec2.AllowRole(roleARN, "")
	l.secrets[types.NamespacedName{Namespace: "ns", Name: "aws-creds"}] = map[string]string{
		"aws_access_key_id": key.AccessKeyID, "aws_secret_access_key": key.SecretAccessKey, "role_arn": roleARN, "source_profile": "default",
	}
	l.ec2.BeforeAction(func(action string) {
		if action == "AssumeRole" {
			l.ec2.FailEveryCall(&ec2test.Error{Status: 400, Code: "Gossip", Message: "assumed-secret-1 assumed-token-1"})
		}
	})
	_, err := l.Observe(t.Context(), ref(t, infraID))
	if err == nil || !strings.HasSuffix(err.Error(), "Gossip: *** ***") {
		t.Errorf("got %v", err)
	}
}
