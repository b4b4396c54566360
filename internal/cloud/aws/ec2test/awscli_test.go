package ec2test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/test/sims"
)

// awscli shares no code with the Go SDK, so what both accept as EC2 is not only our own idea of it.
func TestAwscliTakesItForEC2(t *testing.T) {
	if testing.Short() {
		t.Skip("awscli takes a second to start")
	}
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("awscli is not installed, and this is left to make test-sims")
	}
	s := New(t)
	s.AddAccessKey(sdk.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"})
	s.AllowRole("arn:aws:iam::123456789012:role/r", "ext")
	for range PageSize {
		s.AddInstance(Instance{Tags: map[string]string{"kubernetes.io/cluster/other": "owned"}})
	}
	id := s.AddInstance(Instance{Tags: map[string]string{"kubernetes.io/cluster/c": "owned", "Name": "c-worker-0"}})
	spot := s.AddInstance(Instance{Spot: true, State: Running})
	sleeper := s.AddInstance(Instance{State: Running, Hibernation: true})

	run := func(t *testing.T, secret, query string, args ...string) string {
		t.Helper()
		args = append(args, "--endpoint-url", s.URL, "--region", "us-east-1", "--output", "json", "--query", query)
		env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }) // without the credentials of whoever runs the test
		env = append(env, "AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY="+secret, "NO_PROXY=127.0.0.1",
			"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true")
		out, content := sims.RunClient(t, env, "aws", args...)
		if !content {
			return strings.TrimSpace(out)
		}
		var compact any
		if err := json.Unmarshal([]byte(out), &compact); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		raw, err := json.Marshal(compact)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const states = "*[].[InstanceId,PreviousState.Name,CurrentState.Name]"
	for _, c := range []struct {
		name, secret, query, args, want string
	}{
		{
			"it lists by tag over pages", "secret", "Reservations[].Instances[].[InstanceId,State.Name,Tags[?Key=='Name'].Value|[0]]",
			"ec2 describe-instances --page-size 50 --filters Name=tag:kubernetes.io/cluster/c,Values=owned", `[["` + id + `","stopped","c-worker-0"]]`,
		},
		{"it starts", "secret", states, "ec2 start-instances --instance-ids " + id, `[["` + id + `","stopped","pending"]]`},
		{"it hears that the state is wrong", "secret", states, "ec2 stop-instances --instance-ids " + spot + " " + id, "(IncorrectInstanceState)|(UnsupportedOperation)"},
		{"it hibernates", "secret", states, "ec2 stop-instances --hibernate --instance-ids " + sleeper, `[["` + sleeper + `","running","stopping"]]`},
		{
			"it lists which instances hibernate and which can", "secret", "Reservations[].Instances[].[HibernationOptions.Configured,StateReason.Code]",
			"ec2 describe-instances --instance-ids " + sleeper, `[[true,"Client.UserInitiatedHibernate"]]`,
		},
		{"it hears that an instance does not hibernate", "secret", states, "ec2 stop-instances --hibernate --instance-ids " + sleeper + " " + spot, "(UnsupportedHibernationConfiguration)|(UnsupportedOperation)"},
		{"it terminates", "secret", states, "ec2 terminate-instances --instance-ids " + spot, `[["` + spot + `","running","shutting-down"]]`},
		{"it assumes a role", "secret", "Credentials.SecretAccessKey", "sts assume-role --role-arn arn:aws:iam::123456789012:role/r --role-session-name test --external-id ext", `"assumed-secret-104"`},
		{"a wrong signature is found out", "wrong", states, "ec2 start-instances --instance-ids " + id, "(AuthFailure)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, c.secret, c.query, strings.Fields(c.args)...)
			if !strings.HasPrefix(c.want, "(") {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			for _, code := range strings.Split(c.want, "|") {
				if strings.Contains(got, code) {
					return
				}
			}
			t.Errorf("got %s, want %s", got, c.want)
		})
	}
}
