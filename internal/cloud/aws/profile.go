package aws

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// configKey is the Secret key that contains a complete AWS configuration file.
const configKey = "aws_config"

// profiles maps the section names of a configuration file to their settings.
type profiles map[string]map[string]string

// forbiddenSettings run programs, read files or contact other hosts, all from the hub: someone who
// can write a Secret must not be able to do that.
var forbiddenSettings = []string{
	"credential_process", "credential_source", "login_session", "mfa_serial", "sso_account_id", "sso_session", "sso_start_url", "web_identity_token_file",
}

// readProfiles parses the configuration file. If there is none, it treats each key of the Secret as
// a setting of the default profile, as Hive does.
func readProfiles(data map[string][]byte) (profiles, error) {
	if raw := data[configKey]; raw != nil {
		return parseConfigFile(string(raw))
	}
	set := map[string]string{}
	for k, v := range data {
		set[strings.ToLower(k)] = strings.TrimSpace(string(v))
	}
	return profiles{"default": set}, nil
}

// parseConfigFile parses an AWS configuration file. Errors contain only line numbers: a malformed
// line may be a secret.
func parseConfigFile(file string) (profiles, error) {
	out, name := profiles{}, ""
	for n, line := range strings.Split(file, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '[':
			head, _, closed := strings.Cut(text[1:], "]")
			if !closed {
				return nil, fmt.Errorf("line %d of %s starts with [ and has no ]", n+1, configKey)
			}
			name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(head), "profile "))
			if out[name] == nil {
				out[name] = map[string]string{}
			}
		case name == "":
			return nil, fmt.Errorf("line %d of %s precedes the first [profile]", n+1, configKey)
		default:
			k, v, ok := strings.Cut(text, "=")
			if !ok {
				return nil, fmt.Errorf("line %d of %s has no =", n+1, configKey)
			}
			out[name][strings.ToLower(strings.TrimSpace(k))] = stripComment(v)
		}
	}
	return out, nil
}

// stripComment returns v without a trailing comment, which must follow whitespace.
func stripComment(v string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		v, _, _ = strings.Cut(v, mark)
	}
	return strings.TrimSpace(v)
}

// resolveCredentials returns the credentials of the default profile, or those of its source profile
// and the role to assume with them.
func (ps profiles) resolveCredentials() (sdk.Credentials, role, error) {
	for name, set := range ps {
		for _, k := range forbiddenSettings {
			if _, ok := set[k]; ok {
				return sdk.Credentials{}, role{}, fmt.Errorf("%s of profile %s is not allowed: set aws_access_key_id and aws_secret_access_key, "+
					"or role_arn with a source_profile that has them", k, name)
			}
		}
	}
	set := ps["default"]
	r := role{arn: set["role_arn"], externalID: set["external_id"]}
	if r.arn == "" {
		key, err := profileCredentials(set)
		return key, r, err
	}
	source, ok := ps[set["source_profile"]]
	if !ok {
		return sdk.Credentials{}, role{}, fmt.Errorf("role_arn of profile default needs a source_profile that exists; existing profiles: %s", ps.joinProfileNames())
	}
	if source["role_arn"] != "" && set["source_profile"] != "default" {
		return sdk.Credentials{}, role{}, fmt.Errorf("source_profile %s assumes a role itself: use one with aws_access_key_id and aws_secret_access_key", set["source_profile"])
	}
	key, err := profileCredentials(source)
	return key, r, err
}

func (ps profiles) joinProfileNames() string {
	var out []string
	for name := range ps {
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func profileCredentials(set map[string]string) (sdk.Credentials, error) {
	c := sdk.Credentials{AccessKeyID: set["aws_access_key_id"], SecretAccessKey: set["aws_secret_access_key"], SessionToken: set["aws_session_token"]}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return c, errors.New("aws_access_key_id or aws_secret_access_key is missing or empty: set both")
	}
	return c, nil
}
