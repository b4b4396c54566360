package aws

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/fault"
)

func TestWhatAWSAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		in   ec2test.Error
		kind fault.Kind
		says string
	}{
		"throttled":                   {ec2test.Error{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}, fault.Wait, "RequestLimitExceeded"},
		"throttled, otherwise":        {ec2test.Error{Status: 400, Code: "Throttling", Message: "Rate exceeded"}, fault.Wait, "Throttling"},
		"an internal error":           {ec2test.Error{Status: 500, Code: "InternalError", Message: "An internal error has occurred"}, fault.Unknown, "InternalError"},
		"unavailable":                 {ec2test.Error{Status: 503, Code: "Unavailable", Message: "The service is unavailable."}, fault.Unknown, "Unavailable"},
		"a new code":                  {ec2test.Error{Status: 400, Code: "BrandNew", Message: "Something."}, fault.Unknown, "BrandNew: Something."},
		"bad credentials":             {ec2test.Error{Status: 401, Code: "AuthFailure", Message: "AWS was not able to validate."}, fault.Denied, "Secret aws-creds of namespace ns"},
		"an expired token":            {ec2test.Error{Status: 400, Code: "ExpiredTokenException", Message: "It is expired."}, fault.Denied, "Secret aws-creds of namespace ns"},
		"a request that came late":    {ec2test.Error{Status: 400, Code: "RequestExpired", Message: "Request has expired."}, fault.Denied, "the hub's clock is correct"},
		"a region that is not opened": {ec2test.Error{Status: 401, Code: "OptInRequired", Message: "You are not subscribed to this service."}, fault.Denied, "enabled for region us-east-1"},
		"no permission": {
			ec2test.Error{Status: 403, Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. Encoded authorization failure message: " + strings.Repeat("x", 500)},
			fault.Denied, "UnauthorizedOperation: You are not authorized to perform this operation. (allow it to the credentials in Secret aws-creds of namespace ns",
		},
		"a secret in a message":   {ec2test.Error{Status: 400, Code: "Gossip", Message: "it is " + key.SecretAccessKey + " of " + key.AccessKeyID}, fault.Unknown, "Gossip: it is *** of ***"},
		"a proxy in between":      {ec2test.Error{Status: 502, Body: "<html><body>Bad Gateway"}, fault.Unknown, "status 502, Bad Gateway"},
		"a proxy that says no":    {ec2test.Error{Status: 407, Body: "who are you?"}, fault.Unknown, "status 407, Proxy Authentication Required"},
		"an answer with no error": {ec2test.Error{Status: 500, Body: "<Response></Response>"}, fault.Unknown, "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ec2.FailEveryCall(&c.in)
			_, err := l.Observe(t.Context(), ref(t, infraID))
			_, again := l.Observe(t.Context(), ref(t, infraID))
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, which is %v; want %v with %q", err, fault.KindOf(err), c.kind, c.says)
			}
			if err.Error() != again.Error() {
				t.Errorf("it is not said the same way twice:\n%v\n%v", err, again)
			}
			for _, tiresome := range []string{"Encoded", "RequestID", "59dbff89", "planted"} {
				if strings.Contains(err.Error(), tiresome) {
					t.Errorf("%q is in: %v", tiresome, err)
				}
			}
		})
	}
}

func TestNobodyListensThere(t *testing.T) {
	l := newLab(t)
	l.Actuator = New(l.secret, WithEndpoint("http://127.0.0.1:1"))
	_, err := l.Observe(t.Context(), ref(t, infraID))
	if fault.KindOf(err) != fault.Unknown || !strings.Contains(err.Error(), "AWS cannot be reached: dial tcp 127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}
