package gcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
)

// sim is a simulator of the parts of Compute Engine that hibernation needs: pages, zones, filters,
// masks, tokens, and instances that change state only when stepped.
type sim struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex

	tokens    tokens
	instances map[string]*instance // by zone and name
	page      int                  // maximum number of instances on a page

	down     map[string]string // zones that cannot be listed, with the code of the warning
	loose    bool              // filters match everything
	throttle int               // number of calls to reject as too many
	fail     *failure          // the error of every call for an instance
	noStop   bool              // suspended instances must be resumed before they can be stopped
	// noOperations forbids to list operations; meanwhile is called before a request for an instance.
	noOperations bool
	meanwhile    func(call string)
	clock        time.Time     // time of the next operation
	ops          []suspension  // operations that were to suspend instances
	hung         chan struct{} // if not nil, calls hang, and each sends a value
	calls        []string      // requests for instances
}

type instance struct {
	compute.Instance
	next   []string // next states
	stale  string   // the state in lists, if it differs
	broken bool     // does not start
	refuse bool     // rejects every call
	// noSuspend is the error of calls to suspend it; deaf makes its guest ignore them.
	noSuspend *failure
	deaf      bool
	guest     cloudtest.Guest
}

type suspension struct {
	*compute.Operation
	target uint64
	zone   string
}

type failure struct {
	status          int
	reason, message string
	operation       bool // the call succeeds, but its operation fails
}

func newSim(t *testing.T) *sim {
	t.Helper()
	s := &sim{t: t, instances: map[string]*instance{}, down: map[string]string{}, page: 7, clock: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("GET /compute/v1/projects/{project}/aggregated/instances", s.guard(s.list))
	mux.HandleFunc("GET /compute/v1/projects/{project}/zones/{zone}/operations", s.guard(s.operations))
	mux.HandleFunc("POST /compute/v1/projects/{project}/zones/{zone}/instances/{instance}/{verb}", s.guard(s.act))
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// zones are those of region us-east1, and one in another region.
var zones = []string{"us-east1-b", "us-east1-c", "us-east1-d", "asia-east1-a"}

const infra = "c-12345"

// add creates an instance as the installer does.
func (s *sim) add(infraID, name, zone, status string) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &instance{Instance: compute.Instance{
		Id: uint64(1000 + len(s.instances)), Name: name, Status: status, MachineType: s.URL + "/machineTypes/n2-standard-4", Zone: s.URL + "/compute/v1/projects/" + projectID + "/zones/" + zone,
		Labels: map[string]string{clusterLabel + infraID: "owned"}, Disks: []*compute.AttachedDisk{{Type: "PERSISTENT"}},
	}}
	s.instances[zone+"/"+name] = i
	return i
}

// named returns the instance with that name.
func (s *sim) named(name string) *instance {
	s.t.Helper()
	for _, i := range s.instances {
		if i.Name == name {
			return i
		}
	}
	s.t.Fatalf("no instance %s", name)
	return nil
}

// step moves each instance to its next state.
func (s *sim) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		if len(i.next) > 0 {
			i.Status, i.next = i.next[0], i.next[1:]
		}
		if state := instanceStates[i.Status]; i.Status == "SUSPENDED" {
			i.guest.Step(state, cloud.DepthSuspend)
		} else {
			i.guest.Step(state, cloud.DepthStop)
		}
	}
	s.clock = s.clock.Add(10 * time.Second)
}

// operations lists operations that were to suspend an instance.
func (s *sim) operations(w http.ResponseWriter, r *http.Request) {
	if s.noOperations {
		refuse(w, 403, "forbidden", "Required 'compute.zoneOperations.list' permission for 'projects/"+projectID+"'")
		return
	}
	var target uint64
	if _, err := fmt.Sscanf(r.URL.Query().Get("filter"), `(operationType = "suspend") (targetId = %d)`, &target); err != nil {
		refuse(w, 400, "invalid", "Invalid value for field 'filter'")
		return
	}
	out := compute.OperationList{}
	for _, op := range s.ops {
		if op.target == target && op.zone == r.PathValue("zone") {
			out.Items = append(out.Items, op.Operation)
		}
	}
	var plain any
	raw, _ := json.Marshal(out)
	json.Unmarshal(raw, &plain)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(masked(plain, parseMask(r.URL.Query().Get("fields"))))
}

// refuse writes an error response as Google does.
func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []map[string]string{{"reason": reason, "message": message, "domain": "global"}},
	}})
}

// guard checks the requirements that all calls share.
func (s *sim) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.hung != nil {
			s.hung <- struct{}{}
			<-r.Context().Done()
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case !s.tokens.good(r.Header.Get("Authorization")):
			refuse(w, 401, "authError", "Request had invalid authentication credentials.")
		case s.tokens.forbidden:
			refuse(w, 403, "forbidden", "Required 'compute.instances.list' permission for 'projects/"+projectID+"'")
		case s.throttle > 0:
			s.throttle--
			refuse(w, 403, "rateLimitExceeded", "Rate Limit Exceeded")
		case r.PathValue("project") != projectID:
			refuse(w, 404, "notFound", "The resource 'projects/"+r.PathValue("project")+"' was not found")
		default:
			next(w, r)
		}
	}
}

var nameFilter = regexp.MustCompile(`^name eq "(.*)"$`)

func (s *sim) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	filter := nameFilter.FindStringSubmatch(q.Get("filter"))
	if filter == nil {
		refuse(w, 400, "invalid", "Invalid value for field 'filter': "+q.Get("filter"))
		return
	}
	if len(s.down) > 0 && q.Get("returnPartialSuccess") != "true" {
		refuse(w, 503, "backendError", "A zone cannot be reached.")
		return
	}
	whole := regexp.MustCompile("^(?:" + filter[1] + ")$")
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(s.instances)) {
		zone, name, _ := strings.Cut(key, "/")
		if s.down[zone] == "" && (s.loose || whole.MatchString(name)) {
			keys = append(keys, key)
		}
	}
	from, _ := strconv.Atoi(q.Get("pageToken"))
	until := min(from+s.page, len(keys))
	out := s.scopes()
	if until < len(keys) {
		out.NextPageToken = strconv.Itoa(until)
	}
	for _, key := range keys[from:until] {
		zone, _, _ := strings.Cut(key, "/")
		i := s.instances[key].Instance
		if stale := s.instances[key].stale; stale != "" {
			i.Status = stale
		}
		list := out.Items["zones/"+zone]
		list.Warning, list.Instances = nil, append(list.Instances, &i)
		out.Items["zones/"+zone] = list
	}
	var plain any
	raw, _ := json.Marshal(out)
	json.Unmarshal(raw, &plain)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(masked(plain, parseMask(q.Get("fields"))))
}

// scopes returns an empty list, which nevertheless names every zone.
func (s *sim) scopes() *compute.InstanceAggregatedList {
	out := &compute.InstanceAggregatedList{Kind: "compute#instanceAggregatedList", Items: map[string]compute.InstancesScopedList{}}
	for _, zone := range zones {
		code := s.down[zone]
		if code == "" {
			code = "NO_RESULTS_ON_PAGE"
		} else {
			out.Unreachables = append(out.Unreachables, s.URL+"/compute/v1/projects/"+projectID+"/zones/"+zone)
		}
		out.Items["zones/"+zone] = compute.InstancesScopedList{Warning: &compute.InstancesScopedListWarning{Code: code, Message: "There is nothing here."}}
	}
	return out
}

func (s *sim) act(w http.ResponseWriter, r *http.Request) {
	verb, name := r.PathValue("verb"), r.PathValue("instance")
	s.calls = append(s.calls, verb+" "+name)
	if s.meanwhile != nil {
		s.meanwhile(verb + " " + name)
	}
	i := s.instances[r.PathValue("zone")+"/"+name]
	switch {
	case i == nil:
		refuse(w, 404, "notFound", "The resource '"+name+"' was not found")
		return
	case i.refuse:
		refuse(w, 400, "invalid", name+" is not what it should be"+s.repeat(r))
		return
	case s.fail != nil && !s.fail.operation:
		refuse(w, s.fail.status, s.fail.reason, s.fail.message+s.repeat(r))
		return
	}
	op := &compute.Operation{Name: "operation-1", Status: "RUNNING", OperationType: verb, InsertTime: s.clock.Format(time.RFC3339)}
	if verb == "suspend" {
		if no := i.noSuspend; no != nil {
			refuse(w, no.status, no.reason, no.message+s.repeat(r))
			return
		}
		failed := *op
		if i.deaf {
			failed.Error = &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: "GUEST_OS_NOT_RESPONDING", Message: "The guest did not react to ACPI S3" + s.repeat(r)}}}
		}
		s.ops = append(s.ops, suspension{&failed, i.Id, r.PathValue("zone")})
	}
	if verb == "stop" && i.Status == "SUSPENDED" && s.noStop {
		refuse(w, 400, "invalid", "The instance is suspended.")
		return
	}
	if s.fail != nil {
		op.Error = &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: s.fail.reason, Message: s.fail.message}}}
	} else if status, reason, message := i.obey(verb, r.URL.Query().Get("discardLocalSsd")); status == http.StatusNotModified {
		w.WriteHeader(status)
		return
	} else if status != http.StatusOK {
		refuse(w, status, reason, message)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(op)
}

// repeat returns the token of a call if servers echo what they receive.
func (s *sim) repeat(r *http.Request) string {
	if !s.tokens.echo {
		return ""
	}
	return ": " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// obey applies verb to an instance as its state requires.
func (i *instance) obey(verb, discard string) (status int, reason, message string) {
	up := []string{"STAGING", "RUNNING"}
	if i.broken {
		up = []string{"STAGING", "REPAIRING"}
	}
	switch from := verb + " " + i.Status; from {
	case "start RUNNING", "stop TERMINATED":
		return http.StatusNotModified, "", ""
	case "start TERMINATED", "start STOPPED":
		i.Status, i.next = "PROVISIONING", up
	case "resume SUSPENDED":
		i.Status, i.next = "PROVISIONING", up
	case "stop RUNNING", "stop PROVISIONING", "stop STAGING", "stop PENDING":
		if hasLocalSSD(&i.Instance) && discard == "" {
			return 400, "badRequest", "Instances with local SSDs cannot be stopped without discardLocalSsd."
		}
		i.Status, i.next = "STOPPING", []string{"TERMINATED"}
	case "stop SUSPENDED":
		i.Status, i.next = "STOPPING", []string{"TERMINATED"}
	case "suspend RUNNING":
		i.Status, i.next = "SUSPENDING", []string{"SUSPENDED"}
		if i.deaf {
			i.next = []string{"RUNNING"}
		}
	case "suspend SUSPENDED", "suspend TERMINATED", "suspend SUSPENDING":
		return 400, "invalid", "UNSUPPORTED_OPERATION: You cannot suspend an instance that is " + i.Status
	default:
		return 400, "resourceNotReady", fmt.Sprintf("The resource is not ready: %s while it is %s", verb, i.Status)
	}
	return http.StatusOK, "", ""
}

// A field mask: a,b(c,d),e/*/f.
type fields map[string]fields

// parseMask reads a mask; nil is everything.
func parseMask(text string) fields {
	if text == "" {
		return nil
	}
	out, _ := parseList(text)
	return out
}

func parseList(text string) (fields, string) {
	out := fields{}
	for {
		var sub fields
		n := strings.IndexAny(text, ",/()")
		name, rest := text, ""
		if n >= 0 {
			name, rest = text[:n], text[n:]
		}
		switch {
		case strings.HasPrefix(rest, "/"):
			sub, rest = parsePath(rest[1:])
		case strings.HasPrefix(rest, "("):
			sub, rest = parseList(rest[1:])
			rest = strings.TrimPrefix(rest, ")")
		}
		out.merge(name, sub)
		if !strings.HasPrefix(rest, ",") {
			return out, rest
		}
		text = rest[1:]
	}
}

// parsePath parses the text below a slash: one path, up to the next comma.
func parsePath(text string) (fields, string) {
	n := strings.IndexAny(text, ",/()")
	if n < 0 {
		return fields{text: nil}, ""
	}
	name, rest := text[:n], text[n:]
	var sub fields
	switch rest[0] {
	case '/':
		sub, rest = parsePath(rest[1:])
	case '(':
		sub, rest = parseList(rest[1:])
		rest = strings.TrimPrefix(rest, ")")
	}
	return fields{name: sub}, rest
}

func (f fields) merge(name string, sub fields) {
	if f[name] == nil {
		f[name] = sub
		return
	}
	for k, v := range sub {
		f[name].merge(k, v)
	}
}

// masked returns v without the fields that f does not name.
func masked(v any, f fields) any {
	if f == nil {
		return v
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = masked(v[i], f)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, one := range v {
			sub, ok := f[k]
			if all, any := f["*"]; any && !ok {
				sub, ok = all, true
			}
			if ok {
				out[k] = masked(one, sub)
			}
		}
		return out
	default:
		return v
	}
}
