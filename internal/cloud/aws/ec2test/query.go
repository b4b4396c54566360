package ec2test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// query contains the parameters of a call.
type query struct{ url.Values }

// listValues returns the values of name.1, name.2 and so on.
func (q query) listValues(name string) []string {
	var out []string
	for n := 1; q.Has(fmt.Sprintf("%s.%d", name, n)); n++ {
		out = append(out, q.Get(fmt.Sprintf("%s.%d", name, n)))
	}
	return out
}

// page says where a list continues, and with which filters it was started.
type page struct {
	from    int
	filters string
}

func (s *Server) describeInstances(q query) (any, *Error) {
	ids := q.listValues("InstanceId")
	size, err := q.pageSize()
	if err != nil {
		return nil, err
	}
	filters, err := q.parseFilters()
	if err != nil {
		return nil, err
	}
	here := page{filters: fmt.Sprint(filters, ids)}
	if token := q.Get("NextToken"); token != "" {
		p, ok := s.pages[token]
		if !ok || p.filters != here.filters {
			return nil, invalidParameter("Unable to parse pagination token")
		}
		here = p
	}
	for _, id := range ids {
		if s.findInstance(id) == nil {
			return nil, newAPIError(http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
	}
	out, end := newDescription(), min(here.from+size, len(s.instances))
	for _, i := range s.instances[min(here.from, end):end] {
		if (len(ids) == 0 || slices.Contains(ids, i.ID)) && filters.matchesInstance(i) {
			out.Reservations = append(out.Reservations, newReservation(i))
		}
	}
	if end < len(s.instances) {
		out.NextToken = fmt.Sprintf("page+%d/%d=", end, len(s.pages))
		s.pages[out.NextToken] = page{end, here.filters}
	}
	return out, nil
}

// pageSize returns the number of instances on a page.
func (q query) pageSize() (int, *Error) {
	most := q.Get("MaxResults")
	if most == "" {
		return PageSize, nil
	}
	n, err := strconv.Atoi(most)
	if err != nil || n < 5 || n > 1000 {
		return 0, invalidParameter("Value ( %s ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.", most)
	}
	if len(q.listValues("InstanceId")) > 0 {
		return 0, newAPIError(http.StatusBadRequest, "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	return min(n, PageSize), nil
}

func invalidParameter(format string, args ...any) *Error {
	return newAPIError(http.StatusBadRequest, "InvalidParameterValue", format, args...)
}

// filters are conditions that must all match; each matches if one of its values does.
type filters map[string][]string

// parseFilters parses Filter.1.Name, Filter.1.Value.1 and so on.
func (q query) parseFilters() (filters, *Error) {
	out := filters{}
	for n := 1; q.Has(fmt.Sprintf("Filter.%d.Name", n)); n++ {
		name, values := q.Get(fmt.Sprintf("Filter.%d.Name", n)), q.listValues(fmt.Sprintf("Filter.%d.Value", n))
		if !strings.HasPrefix(name, "tag:") && name != "instance-id" && name != "instance-state-name" {
			return nil, invalidParameter("The filter '%s' is invalid", name)
		}
		if len(values) > 200 {
			return nil, newAPIError(http.StatusBadRequest, "FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200")
		}
		out[name] = values
	}
	return out, nil
}

func (f filters) matchesInstance(i *Instance) bool {
	for name, values := range f {
		got, has := i.State, true
		if tag, ok := strings.CutPrefix(name, "tag:"); ok {
			got, has = i.Tags[tag], slices.Contains(sortedTagKeys(i), tag)
		} else if name == "instance-id" {
			got = i.ID
		}
		if !has || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

// assumeRole issues an access key for a role.
func (s *Server) assumeRole(q query) (any, *Error) {
	arn := q.Get("RoleArn")
	if external, ok := s.roles[arn]; !ok || external != q.Get("ExternalId") || q.Get("RoleSessionName") == "" {
		return nil, newAPIError(http.StatusForbidden, "AccessDenied", "User: arn:aws:iam::123456789012:user/hub is not authorized to perform: sts:AssumeRole on resource: %s", arn)
	}
	s.made++
	c := sdk.Credentials{
		AccessKeyID:     fmt.Sprintf("ASIA%016d", s.made),
		SecretAccessKey: fmt.Sprintf("assumed-secret-%d", s.made),
		SessionToken:    fmt.Sprintf("assumed-token-%d", s.made),
	}
	s.keys[c.AccessKeyID] = &key{Credentials: c}
	return assumeRoleResponse{
		XMLName: xml.Name{Space: "https://sts.amazonaws.com/doc/2011-06-15/", Local: "AssumeRoleResponse"},
		Result: role{
			Key: roleKey{c.AccessKeyID, c.SecretAccessKey, c.SessionToken, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
			User: roleUser{
				Arn: arn + "/" + q.Get("RoleSessionName"), ID: "AROA:" + q.Get("RoleSessionName"),
			},
		},
	}, nil
}
