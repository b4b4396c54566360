package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// settings are the fields of spec.platform.aws that this package reads.
type settings struct {
	Region               string `json:"region"`
	CredentialsSecretRef struct {
		Name string `json:"name"`
	} `json:"credentialsSecretRef"`
	CredentialsAssumeRole *struct {
		RoleARN    string `json:"roleARN"`
		ExternalID string `json:"externalID"`
	} `json:"credentialsAssumeRole"`
}

// role is a role to assume with a key; without an ARN, there is none.
type role struct{ arn, externalID string }

// identity contains the credentials and the region of requests to AWS.
type identity struct {
	region string
	secret types.NamespacedName
	keys   string // keys of the Secret, for messages
	key    sdk.Credentials
	role   role
	// assumed contains the temporary credentials of the role, once it is assumed; never nil.
	assumed *sdk.Credentials
}

// String describes where the credentials come from. It does not contain them.
func (i identity) String() string {
	s := fmt.Sprintf("the credentials in Secret %s of namespace %s (%s)", i.secret.Name, i.secret.Namespace, i.keys)
	if i.role.arn != "" {
		s += " or the role " + i.role.arn + " that they assume"
	}
	return s
}

// redactCredentials removes the credentials from a text from AWS, which normally does not contain
// them.
func (i identity) redactCredentials(text string) string {
	for _, c := range []sdk.Credentials{i.key, *i.assumed} {
		for _, secret := range []string{c.SecretAccessKey, c.SessionToken, c.AccessKeyID} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "***")
			}
		}
	}
	return text
}

// readClusterIdentity reads the credentials of a cluster.
func (actuator *Actuator) readClusterIdentity(ctx context.Context, ref cloud.Ref) (identity, error) {
	var set settings
	if ref.Platform.AWS != nil {
		if err := json.Unmarshal(ref.Platform.AWS.Raw, &set); err != nil {
			return identity{}, fault.NewDenied("spec.platform.aws of ClusterDeployment %s cannot be parsed: %w", ref.Cluster, err)
		}
	}
	if set.Region == "" {
		return identity{}, fault.NewDenied("spec.platform.aws.region of ClusterDeployment %s is empty: set it to the region of its machines", ref.Cluster)
	}
	who := identity{region: set.Region, assumed: &sdk.Credentials{}}
	switch {
	case set.CredentialsSecretRef.Name != "":
		who.secret = types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: set.CredentialsSecretRef.Name}
	case set.CredentialsAssumeRole == nil:
		return identity{}, fault.NewDenied("spec.platform.aws.credentialsSecretRef of ClusterDeployment %s is empty: "+
			"name a Secret with aws_access_key_id and aws_secret_access_key", ref.Cluster)
	case actuator.provider.Name == "":
		return identity{}, fault.NewDenied("spec.platform.aws.credentialsAssumeRole of ClusterDeployment %s cannot be used: "+
			"this hub has no credentials to assume roles with; name a Secret in spec.platform.aws.credentialsSecretRef instead", ref.Cluster)
	default:
		who.secret = actuator.provider
	}
	data, err := actuator.secrets(ctx, who.secret)
	if err != nil {
		return identity{}, err
	}
	if err := who.readCredentials(data); err != nil {
		return identity{}, err
	}
	if set.CredentialsSecretRef.Name == "" {
		who.role = role{set.CredentialsAssumeRole.RoleARN, set.CredentialsAssumeRole.ExternalID}
	}
	return who, nil
}

// readCredentials reads the credentials from the data of the Secret.
func (i *identity) readCredentials(data map[string][]byte) error {
	ps, err := readProfiles(data)
	i.keys = "keys aws_access_key_id and aws_secret_access_key"
	if data[configKey] != nil {
		i.keys = "key " + configKey
	}
	if err == nil {
		i.key, i.role, err = ps.resolveCredentials()
	}
	if err != nil {
		return fault.NewDenied("reading AWS credentials from Secret %s of namespace %s: %w", i.secret.Name, i.secret.Namespace, err)
	}
	return nil
}

// staticCredentials returns a provider of the credentials in the Secret.
func (i identity) staticCredentials() sdk.CredentialsProvider {
	return sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) { return i.key, nil })
}

// assumedCredentials returns a provider of the role's credentials, which it requests with cfg.
func (i identity) assumedCredentials(cfg sdk.Config) sdk.CredentialsProvider {
	client := sts.NewFromConfig(cfg)
	return sdk.CredentialsProviderFunc(func(ctx context.Context) (sdk.Credentials, error) {
		in := &sts.AssumeRoleInput{
			RoleArn:         sdk.String(i.role.arn),
			RoleSessionName: sdk.String("hotspare"),
			DurationSeconds: sdk.Int32(900), // the minimum: a call takes seconds
		}
		if i.role.externalID != "" {
			in.ExternalId = sdk.String(i.role.externalID)
		}
		out, err := client.AssumeRole(ctx, in)
		if err != nil {
			return sdk.Credentials{}, err
		}
		*i.assumed = sdk.Credentials{
			AccessKeyID:     sdk.ToString(out.Credentials.AccessKeyId),
			SecretAccessKey: sdk.ToString(out.Credentials.SecretAccessKey),
			SessionToken:    sdk.ToString(out.Credentials.SessionToken),
			CanExpire:       true,
			Expires:         sdk.ToTime(out.Credentials.Expiration),
		}
		return *i.assumed, nil
	})
}
