package azure

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
)

const (
	infra        = "c-12345"
	clientID     = "11111111-aaaa"
	tenantID     = "22222222-bbbb"
	subscription = "33333333-cccc"
	password     = "pLANTED~client.secret_of-the-principal"
	tokenPrefix  = "tok." // prefix of every token
)

// sim is a simulator of Azure: a token server, and the SDK's fake server with machines that change
// state only when stepped.
type sim struct {
	t  *testing.T
	mu sync.Mutex

	login, manage, audience string         // hosts, and the audience of tokens, as in the public cloud
	groups                  map[string]vms // by name in lower case, as Azure compares them
	page                    int            // maximum number of machines on a page
	overlap                 bool           // a page repeats the last machines of the previous one
	shared                  *fake.VirtualMachinesServerTransport

	given    map[string]bool // issued tokens
	refused  bool            // the secret has expired
	revoked  bool            // tokens do not work
	status   int             // the token server's status code, if not 0
	echo     bool            // servers echo what they receive
	throttle int             // number of calls to reject as too many
	fail     *failure        // the error of every POST
	hung     chan struct{}   // if not nil, calls hang, and each sends a value
	calls    []string        // requests for machines
}

type vms map[string]*vm

type vm struct {
	power, provisioning string
	tags                map[string]string
	next                []string // next power states
	broken              bool     // does not start
	refuse              bool     // rejects every call
	blind               bool     // its instance view fails
	gone                bool     // lists still contain it, although it is deleted

	hibernates  bool     // hibernation is enabled for it
	noHibernate *failure // the error of every hibernation
	deaf        bool     // its guest does not hibernate
	hibernated  bool
	guest       cloudtest.Guest
}

type failure struct {
	status        int
	code, message string
	after         string
}

func newSim(t *testing.T) *sim {
	t.Helper()
	s := &sim{
		t: t, groups: map[string]vms{}, page: 7, given: map[string]bool{},
		login: "login.microsoftonline.com", manage: "management.azure.com", audience: "https://management.core.windows.net/",
	}
	s.shared = s.server()
	return s
}

func (s *sim) server() *fake.VirtualMachinesServerTransport {
	return fake.NewVirtualMachinesServerTransport(&fake.VirtualMachinesServer{
		NewListPager: s.list, InstanceView: s.view, BeginStart: s.start, BeginDeallocate: s.deallocate,
	})
}

// add creates a machine as the installer does.
func (s *sim) add(group, infraID, name, power string) *vm {
	group = strings.ToLower(group)
	if s.groups[group] == nil {
		s.groups[group] = vms{}
	}
	m := &vm{power: power, provisioning: "succeeded", tags: map[string]string{clusterTag + infraID: "owned"}}
	s.groups[group][name] = m
	return m
}

// named returns the machine with that name.
func (s *sim) named(name string) *vm {
	s.t.Helper()
	for _, group := range s.groups {
		if m := group[name]; m != nil {
			return m
		}
	}
	s.t.Fatalf("no machine %s", name)
	return nil
}

// step moves each machine to its next state.
func (s *sim) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range s.groups {
		for _, m := range group {
			if len(m.next) > 0 {
				m.power, m.next = m.next[0], m.next[1:]
			}
			m.stepGuest()
			if m.broken && m.power == "deallocated" && len(m.next) == 0 && m.provisioning == "updating" {
				m.provisioning = "failed/AllocationFailed"
			}
		}
	}
}

func (v *vm) stepGuest() {
	depth := cloud.DepthStop
	if v.hibernated && v.power == "deallocated" {
		depth = cloud.DepthSuspend
	}
	v.guest.Step(powerStates[v.power], depth)
	if v.deaf && v.hibernated && v.power == "running" {
		v.provisioning, v.hibernated = "failed/VMHibernateFailed", false
	}
}

// RoundTrip simulates the network, and the checks that all of Azure's servers make.
func (s *sim) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.hung != nil {
		s.hung <- struct{}{}
		<-r.Context().Done()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not safe", r.URL)
	}
	if r.URL.Host == s.login {
		return s.token(r)
	}
	if r.URL.Host != s.manage {
		return nil, fmt.Errorf("no such host: %s", r.URL.Host)
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(r.URL.Path, "/")
	last := parts[len(parts)-1]
	switch {
	case s.revoked || !s.given[token]:
		return refusal(r, failure{401, "ExpiredAuthenticationToken", "The access token has expired.", ""}), nil
	case len(parts) < 3 || parts[2] != subscription:
		return refusal(r, failure{404, "SubscriptionNotFound", "The subscription could not be found.", ""}), nil
	case s.throttle > 0:
		s.throttle--
		return refusal(r, failure{429, "TooManyRequests", "The request is being throttled.", "17"}), nil
	case last == "virtualMachines" && len(parts) == 6:
		return refusal(r, failure{403, "AuthorizationFailed", "not on the whole subscription", ""}), nil
	case s.fail != nil && r.Method == http.MethodPost:
		return refusal(r, s.repeat(*s.fail, token)), nil
	case r.Method == http.MethodPost && s.refuses(parts[len(parts)-2]):
		return refusal(r, s.repeat(failure{409, "ScopeLocked", "The scope is locked.", ""}, token)), nil
	case r.URL.Query().Get("hibernate") == "true" && s.refusesHibernation(parts[len(parts)-2]) != nil:
		return refusal(r, s.repeat(*s.refusesHibernation(parts[len(parts)-2]), token)), nil
	case r.Method == http.MethodPost:
		// The SDK's server treats a second call for the same machine as a poll of the first
		// operation; real servers do not. Therefore each call has its own server.
		return s.server().Do(r)
	}
	return s.shared.Do(r)
}

func (s *sim) refuses(name string) bool {
	for _, group := range s.groups {
		if m := group[name]; m != nil {
			return m.refuse
		}
	}
	return false
}

// refusesHibernation returns the error of a hibernation, as Azure checks it before it accepts the request.
func (s *sim) refusesHibernation(name string) *failure {
	for _, group := range s.groups {
		m := group[name]
		switch {
		case m == nil:
		case m.noHibernate != nil:
			return m.noHibernate
		case !m.hibernates:
			return &failure{409, "OperationNotAllowed", "The Hibernate-Deallocate Operation can only be triggered on a VM that is enabled for hibernation.", ""}
		case m.power != "running":
			return &failure{409, "OperationNotAllowed", "The Hibernate-Deallocate Operation can only be triggered on a VM that is successfully provisioned and is running.", ""}
		}
	}
	return nil
}

// repeat adds the content of a call to f, if servers echo what they receive.
func (s *sim) repeat(f failure, token string) failure {
	if s.echo {
		f.message += " " + token + " " + password
	}
	return f
}

func answer(r *http.Request, status int, body any) *http.Response {
	raw, _ := json.Marshal(body)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
	}
}

func refusal(r *http.Request, f failure) *http.Response {
	out := answer(r, f.status, map[string]any{"error": map[string]string{"code": f.code, "message": f.message}})
	if f.after != "" {
		out.Header.Set("Retry-After", f.after)
	}
	return out
}

// token simulates Microsoft's token server.
func (s *sim) token(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	deny := func(status int, code, words string) (*http.Response, error) {
		if s.echo {
			words += " " + r.PostForm.Get("client_secret")
		}
		words += " Trace ID: " + rand.Text() + " Correlation ID: " + rand.Text() + " Timestamp: now"
		return answer(r, status, map[string]string{"error": code, "error_description": words}), nil
	}
	f := r.PostForm
	switch {
	case s.status != 0:
		return answer(r, s.status, nil), nil
	case r.URL.Path != "/"+tenantID+"/oauth2/v2.0/token":
		return deny(400, "invalid_request", "AADSTS90002: Tenant not found.")
	case f.Get("grant_type") != "client_credentials" || f.Get("scope") != s.audience+"/.default":
		return deny(400, "invalid_scope", "AADSTS70011: The provided value for scope is not valid.")
	case f.Get("client_id") != clientID:
		return deny(400, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
	case f.Get("client_secret") != password:
		return deny(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
	case s.refused:
		return deny(401, "invalid_client", "AADSTS7000222: The provided client secret keys are expired.")
	}
	token := tokenPrefix + rand.Text()
	s.given[token] = true
	return answer(r, 200, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": token}), nil
}

func (s *sim) list(group string, _ *armcompute.VirtualMachinesClientListOptions) (resp azfake.PagerResponder[armcompute.VirtualMachinesClientListResponse]) {
	machines, ok := s.groups[strings.ToLower(group)]
	if !ok {
		resp.AddResponseError(http.StatusNotFound, "ResourceGroupNotFound")
		return resp
	}
	var page armcompute.VirtualMachinesClientListResponse
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		one := &armcompute.VirtualMachine{Name: to.Ptr(name), Tags: map[string]*string{}}
		if machines[name].hibernates {
			one.Properties = &armcompute.VirtualMachineProperties{AdditionalCapabilities: &armcompute.AdditionalCapabilities{HibernationEnabled: to.Ptr(true)}}
		}
		for k, v := range machines[name].tags {
			one.Tags[k] = to.Ptr(v)
		}
		if len(page.Value) == s.page {
			resp.AddPage(http.StatusOK, page, nil)
			rest := page.Value[len(page.Value):]
			if s.overlap {
				rest = page.Value[len(page.Value)-1:]
			}
			page = armcompute.VirtualMachinesClientListResponse{}
			page.Value = slices.Clone(rest)
		}
		page.Value = append(page.Value, one)
	}
	resp.AddPage(http.StatusOK, page, nil)
	return resp
}

// find returns the machine of a call.
func (s *sim) find(verb, group, name string, errs *azfake.ErrorResponder) *vm {
	if verb != "view" {
		s.calls = append(s.calls, verb+" "+name)
	}
	m := s.groups[strings.ToLower(group)][name]
	switch {
	case m == nil || m.gone:
		errs.SetResponseError(http.StatusNotFound, "ResourceNotFound")
		return nil
	case m.blind && verb == "view":
		errs.SetResponseError(http.StatusServiceUnavailable, "InternalExecutionError")
		return nil
	}
	return m
}

func (s *sim) view(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientInstanceViewOptions) (
	resp azfake.Responder[armcompute.VirtualMachinesClientInstanceViewResponse], errs azfake.ErrorResponder,
) {
	m := s.find("view", group, name, &errs)
	if m == nil {
		return resp, errs
	}
	var out armcompute.VirtualMachinesClientInstanceViewResponse
	if m.provisioning != "" {
		out.Statuses = append(out.Statuses, &armcompute.InstanceViewStatus{Code: to.Ptr("ProvisioningState/" + m.provisioning)})
	}
	if m.power != "" {
		out.Statuses = append(out.Statuses, &armcompute.InstanceViewStatus{Code: to.Ptr("PowerState/" + m.power)})
	}
	if m.hibernated && m.power != "running" {
		out.Statuses = append(out.Statuses, &armcompute.InstanceViewStatus{Code: to.Ptr("HibernationState/Hibernated")})
	}
	resp.SetResponse(http.StatusOK, out, nil)
	return resp, errs
}

func (s *sim) start(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientBeginStartOptions) (
	resp azfake.PollerResponder[armcompute.VirtualMachinesClientStartResponse], errs azfake.ErrorResponder,
) {
	m := s.find("start", group, name, &errs)
	switch {
	case m == nil:
		return resp, errs
	case m.power == "stopping" || m.power == "deallocating":
		errs.SetResponseError(http.StatusConflict, "Conflict")
		return resp, errs
	case m.broken:
		m.power, m.provisioning, m.next = "starting", "updating", []string{"deallocated"}
	case m.power == "deallocated" || m.power == "stopped":
		m.power, m.provisioning, m.next, m.hibernated = "starting", "succeeded", []string{"running"}, false
	}
	resp.AddNonTerminalResponse(http.StatusAccepted, nil)
	resp.SetTerminalResponse(http.StatusOK, armcompute.VirtualMachinesClientStartResponse{}, nil)
	return resp, errs
}

func (s *sim) deallocate(_ context.Context, group, name string, o *armcompute.VirtualMachinesClientBeginDeallocateOptions) (
	resp azfake.PollerResponder[armcompute.VirtualMachinesClientDeallocateResponse], errs azfake.ErrorResponder,
) {
	hibernate := o != nil && o.Hibernate != nil && *o.Hibernate
	m := s.find(map[bool]string{true: "hibernate", false: "deallocate"}[hibernate], group, name, &errs)
	switch {
	case m == nil:
		return resp, errs
	case hibernate && m.deaf:
		m.power, m.next = "deallocating", []string{"running"}
	case m.power != "deallocated" || m.hibernated:
		m.power, m.next = "deallocating", []string{"deallocated"}
	}
	m.provisioning, m.hibernated = "succeeded", hibernate
	resp.AddNonTerminalResponse(http.StatusAccepted, nil)
	resp.SetTerminalResponse(http.StatusOK, armcompute.VirtualMachinesClientDeallocateResponse{}, nil)
	return resp, errs
}
