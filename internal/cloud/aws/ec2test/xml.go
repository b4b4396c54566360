package ec2test

import (
	"encoding/xml"
	"maps"
	"slices"
)

// These types have the shape of EC2's and STS's responses, limited to the fields that our clients
// and awscli read.

const namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"

// requestID is the request ID of every response: our tests do not distinguish them.
const requestID = "59dbff89-35bd-4eac-99ed-be587EXAMPLE"

type state struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

// newInstanceState returns a state with its code; states that EC2 does not have get code 99.
func newInstanceState(name string) state {
	code, ok := codes[name]
	if !ok {
		code = 99
	}
	return state{code, name}
}

type reason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type profile struct {
	Arn string `xml:"arn"`
	ID  string `xml:"id"`
}

type instance struct {
	ID         string   `xml:"instanceId"`
	State      state    `xml:"instanceState"`
	Type       string   `xml:"instanceType"`
	Zone       string   `xml:"placement>availabilityZone"`
	Lifecycle  string   `xml:"instanceLifecycle,omitempty"`
	Spot       string   `xml:"spotInstanceRequestId,omitempty"`
	Reason     *reason  `xml:"stateReason,omitempty"`
	RootDevice string   `xml:"rootDeviceType"`
	Profile    *profile `xml:"iamInstanceProfile,omitempty"`
	Hibernates bool     `xml:"hibernationOptions>configured"`
	Tags       []tag    `xml:"tagSet>item"`
}

type reservation struct {
	ID        string     `xml:"reservationId"`
	Owner     string     `xml:"ownerId"`
	Instances []instance `xml:"instancesSet>item"`
}

type description struct {
	XMLName      xml.Name
	RequestID    string        `xml:"requestId"`
	Reservations []reservation `xml:"reservationSet>item"`
	NextToken    string        `xml:"nextToken,omitempty"`
}

func newDescription() description {
	return description{XMLName: xml.Name{Space: namespace, Local: "DescribeInstancesResponse"}, RequestID: requestID}
}

func newReservation(i *Instance) reservation {
	out := instance{ID: i.ID, State: newInstanceState(i.State), Type: "m6i.xlarge", Zone: "us-east-1a", RootDevice: "ebs", Hibernates: i.Hibernation}
	if i.Store {
		out.RootDevice = "instance-store"
	}
	if i.Spot {
		out.Lifecycle, out.Spot = "spot", "sir-"+i.ID[2:]
	}
	if i.reason.Code != "" {
		why := i.reason
		out.Reason = &why
	}
	if i.Profile != "" {
		out.Profile = &profile{"arn:aws:iam::123456789012:instance-profile/" + i.Profile, "AIPA" + i.ID}
	}
	for _, k := range sortedTagKeys(i) {
		out.Tags = append(out.Tags, tag{k, i.Tags[k]})
	}
	return reservation{ID: "r-" + i.ID[2:], Owner: "123456789012", Instances: []instance{out}}
}

func sortedTagKeys(i *Instance) []string { return slices.Sorted(maps.Keys(i.Tags)) }

type change struct {
	ID       string `xml:"instanceId"`
	Current  state  `xml:"currentState"`
	Previous state  `xml:"previousState"`
}

type changes struct {
	XMLName   xml.Name
	RequestID string   `xml:"requestId"`
	Instances []change `xml:"instancesSet>item"`
}

func newChanges(response string) changes {
	return changes{XMLName: xml.Name{Space: namespace, Local: response}, RequestID: requestID}
}

type roleKey struct {
	ID      string `xml:"AccessKeyId"`
	Secret  string `xml:"SecretAccessKey"`
	Token   string `xml:"SessionToken"`
	Expires string `xml:"Expiration"`
}

type roleUser struct {
	Arn string `xml:"Arn"`
	ID  string `xml:"AssumedRoleId"`
}

type role struct {
	Key  roleKey  `xml:"Credentials"`
	User roleUser `xml:"AssumedRoleUser"`
}

type assumeRoleResponse struct {
	XMLName xml.Name
	Result  role `xml:"AssumeRoleResult"`
}

type code struct {
	Type    string `xml:"Type,omitempty"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

// errorResponse returns e in the format of service: STS wraps errors differently from EC2.
func errorResponse(service string, e *Error) any {
	c := code{Code: e.Code, Message: e.Message}
	if service == "sts" {
		c.Type = "Sender"
		return struct {
			XMLName   xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
			Error     code     `xml:"Error"`
			RequestID string   `xml:"RequestId"`
		}{Error: c, RequestID: requestID}
	}
	return struct {
		XMLName   xml.Name `xml:"Response"`
		Errors    []code   `xml:"Errors>Error"`
		RequestID string   `xml:"RequestID"`
	}{Errors: []code{c}, RequestID: requestID}
}
