package openstack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud/cloudtest"
)

const (
	user     = "hotspare"
	password = "planted-password/1+2="
	project  = "p1"
	// bogus is contained in tokens, which must not leak any more than passwords.
	bogus = "planted-token"
)

// sim is a simulator of the parts of Keystone and Nova that this package uses. It rejects what they
// reject: expired tokens, microversions that are too new, markers that no longer exist, actions
// that a server's state does not allow. A server changes its state when stepped. sims_test.go runs
// the same tests with the real services.
type sim struct {
	URL string

	mu        sync.Mutex
	tokens    map[string]bool // true while the token is valid
	expired   bool            // the password has expired
	servers   []*vm           // the newest first, as Nova lists them
	maxLimit  int
	newest    int // microversion 2.newest
	cellDown  bool
	linksTo   string // the host in links to the next page; "" is this one
	throttled int
	failure   *failure
	hang      chan struct{}
	calls     []string
	meanwhile func(call string) // called before a call is answered; may change servers
	made      int
	clock     time.Time // time of the next event
	noEvents  bool      // events may not be read
}

// failure is the result of calls whose path has that suffix.
type failure struct {
	path, body, header string
	status             int
}

type vm struct {
	server
	down   bool   // it is in the cell that may be down
	broken bool   // it cannot start
	refuse string // the error of every action
	quota  bool   // the quota is exhausted
	next   string // status after the task is done
	// refused has the errors of the actions that it refuses; unable makes pause and suspend fail later.
	refused map[string]failure
	unable  bool
	guest   cloudtest.Guest
	events  []event // its actions, the newest first
}

// event is an action, as Nova records it.
type event struct {
	Action  string  `json:"action"`
	Message *string `json:"message"`
	Start   string  `json:"start_time"`
}

func newSim(t *testing.T) *sim {
	t.Helper()
	s := &sim{tokens: map[string]bool{}, maxLimit: 50, newest: 90, clock: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// add creates a server. Its ID is as long as Nova's, so that no name is part of it.
func (s *sim) add(v vm) *vm {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	v.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.made)
	v.Status = cmp.Or(v.Status, "SHUTOFF")
	s.servers = slices.Insert(s.servers, 0, &v)
	return &v
}

func (s *sim) remove(id string) {
	s.servers = slices.DeleteFunc(s.servers, func(v *vm) bool { return v.ID == id })
}

// do calls change while no request is being served.
func (s *sim) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Step ends all tasks that are in progress.
func (s *sim) Step() {
	s.do(func() {
		s.clock = s.clock.Add(10 * time.Second)
		for _, v := range s.servers {
			v.step()
			if v.Task == "" {
				v.guest.Step(statusStates[v.Status], statusDepths[v.Status])
			}
		}
	})
}

// step ends the task of a server.
func (v *vm) step() {
	if v.next == "" {
		return
	}
	if v.unable && statusDepths[v.next] != "" {
		v.next, v.events[0].Message = "ACTIVE", new(string)
		*v.events[0].Message = "Error"
	}
	v.Status, v.Task, v.next = v.next, "", ""
	if v.Status == "ACTIVE" && v.broken {
		v.Status, v.Fault.Message = "ERROR", "No valid host was found."
	}
}

func (s *sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		select {
		case hang <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status, header, body := s.answer(r, raw)
	w.Header().Set("Content-Type", "application/json")
	for k, v := range header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(status)
	if text, ok := body.(string); ok {
		_, _ = io.WriteString(w, text) // the client may have disconnected
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}

func (s *sim) answer(r *http.Request, raw []byte) (int, map[string]string, any) {
	path := r.URL.Path
	call := r.Method + " " + path
	if strings.HasSuffix(path, "/action") {
		call += " " + string(raw)
	}
	s.calls = append(s.calls, call)
	if s.meanwhile != nil {
		s.meanwhile(call)
	}
	if s.throttled > 0 {
		s.throttled--
		return 429, map[string]string{"Retry-After": "7"}, said("overLimit", 429, "Too many requests; "+password)
	}
	if f := s.failure; f != nil && strings.HasSuffix(path, f.path) {
		return f.status, map[string]string{"Location": f.header}, f.body
	}
	if path == "/identity/v3/auth/tokens" {
		return s.login(raw)
	}
	if !strings.HasPrefix(path, "/compute/v2.1/servers/") {
		return 404, nil, said("error", 404, "The resource could not be found.")
	}
	if !s.tokens[r.Header.Get("X-Auth-Token")] {
		return 401, nil, said("error", 401, "The request you have made requires authentication.")
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(cmp.Or(r.Header.Get("X-OpenStack-Nova-API-Version"), "2.1"), "2."))
	if err != nil || minor > s.newest {
		return 406, nil, said("notAcceptable", 406, fmt.Sprintf("Version 2.%d is not supported by the API. Minimum is 2.1 and maximum is 2.%d.", minor, s.newest))
	}
	parts := strings.Split(strings.TrimPrefix(path, "/compute/v2.1/servers/"), "/")
	if parts[0] == "detail" {
		return s.list(r, minor)
	}
	i := slices.IndexFunc(s.servers, func(v *vm) bool { return v.ID == parts[0] })
	if i < 0 {
		return 404, nil, said("itemNotFound", 404, "Instance "+parts[0]+" could not be found.")
	}
	if parts[len(parts)-1] == "os-instance-actions" {
		if s.noEvents {
			return 403, nil, said("forbidden", 403, "Policy doesn't allow it to be performed.")
		}
		return 200, nil, map[string]any{"instanceActions": s.servers[i].events}
	}
	if len(parts) == 1 {
		return 200, nil, map[string]any{"server": s.view(s.servers[i], minor)}
	}
	return s.act(s.servers[i], raw, r.Header.Get("X-Auth-Token"))
}

func said(kind string, code int, message string) any {
	return map[string]any{kind: map[string]any{"code": code, "message": message}}
}

// login handles POST /v3/auth/tokens.
func (s *sim) login(raw []byte) (int, map[string]string, any) {
	type named struct{ ID, Name string }
	var in struct {
		Auth struct {
			Identity struct {
				Methods  []string
				Password struct {
					User struct {
						ID, Name, Password string
						Domain             named
					}
				}
				Credential struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope struct {
				Project struct {
					ID, Name string
					Domain   named
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return 400, nil, said("error", 400, "Malformed request")
	}
	who, scope := in.Auth.Identity.Password.User, in.Auth.Scope.Project
	ok := who.Name == user && who.Domain.Name == "Default" && who.Password == password && (scope.ID == project || scope.Name == project && scope.Domain.Name == "Default")
	if slices.Equal(in.Auth.Identity.Methods, []string{"application_credential"}) {
		ok = in.Auth.Identity.Credential.ID == "ac1" && in.Auth.Identity.Credential.Secret == password
	}
	if !ok || s.expired {
		return 401, nil, said("error", 401, "The request you have made requires authentication. (not by "+in.Auth.Identity.Password.User.Password+")")
	}
	token := fmt.Sprintf("%s-%d", bogus, len(s.tokens)+1)
	s.tokens[token] = true
	endpoint := func(kind, region, url string) map[string]any {
		return map[string]any{"interface": kind, "region": region, "region_id": region, "url": url}
	}
	return 201, map[string]string{"X-Subject-Token": token}, map[string]any{"token": map[string]any{
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"),
		"project":    map[string]any{"id": "0123", "name": project},
		"catalog": []any{
			map[string]any{"type": "volumev3", "endpoints": []any{endpoint("public", "one", s.URL+"/wrong")}},
			map[string]any{"type": "compute", "endpoints": []any{
				endpoint("admin", "one", s.URL+"/wrong"),
				endpoint("public", "two", s.URL+"/wrong"),
				endpoint("public", "one", s.URL+"/compute/v2.1"),
			}},
		},
	}}
}

// list handles GET /servers/detail.
func (s *sim) list(r *http.Request, minor int) (int, map[string]string, any) {
	limit, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("limit"), strconv.Itoa(s.maxLimit)))
	if err != nil {
		return 400, nil, said("badRequest", 400, "limit must be an integer")
	}
	limit = min(limit, s.maxLimit)
	rest := s.servers
	if marker := r.URL.Query().Get("marker"); marker != "" {
		i := slices.IndexFunc(rest, func(v *vm) bool { return v.ID == marker })
		if i < 0 {
			return 400, nil, said("badRequest", 400, "marker ["+marker+"] not found")
		}
		rest = rest[i+1:]
	}
	some := rest[:min(limit, len(rest))]
	out := map[string]any{}
	var views []any
	for _, v := range some {
		if s.cellDown && v.down && minor < 69 {
			continue
		}
		views = append(views, s.view(v, minor))
	}
	out["servers"] = views
	if len(some) == limit && limit > 0 {
		next := cmp.Or(s.linksTo, s.URL) + r.URL.Path + "?marker=" + some[limit-1].ID
		out["servers_links"] = []any{map[string]any{"rel": "next", "href": next}}
	}
	return 200, nil, out
}

// view returns a server in the format of a microversion.
func (s *sim) view(v *vm, minor int) map[string]any {
	if s.cellDown && v.down {
		return map[string]any{"id": v.ID, "status": "UNKNOWN", "tenant_id": "0123", "created": "2026-01-01T00:00:00Z", "links": []any{}}
	}
	out := map[string]any{"id": v.ID, "name": v.Name, "status": v.Status, "metadata": v.Metadata, "OS-EXT-STS:task_state": nil}
	if v.Task != "" {
		out["OS-EXT-STS:task_state"] = v.Task
	}
	if v.Status == "ERROR" || v.Status == "DELETED" {
		out["fault"] = map[string]any{"code": 500, "message": v.Fault.Message}
	}
	if minor >= 9 {
		out["locked"] = v.Locked
	}
	if minor >= 26 {
		out["tags"] = v.Tags
	}
	return out
}

// actions maps an action to the statuses in which it is allowed, and its effect.
var actions = map[string]struct {
	from       []string
	task, next string
}{
	"os-start": {[]string{"SHUTOFF"}, "powering-on", "ACTIVE"},
	"os-stop":  {[]string{"ACTIVE", "ERROR"}, "powering-off", "SHUTOFF"},
	"shelve":   {[]string{"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"}, "shelving", "SHELVED_OFFLOADED"},
	"unshelve": {[]string{"SHELVED", "SHELVED_OFFLOADED"}, "unshelving", "ACTIVE"},
	"pause":    {[]string{"ACTIVE"}, "pausing", "PAUSED"},
	"suspend":  {[]string{"ACTIVE"}, "suspending", "SUSPENDED"},
	"unpause":  {[]string{"PAUSED"}, "unpausing", "ACTIVE"},
	"resume":   {[]string{"SUSPENDED"}, "resuming", "ACTIVE"},
}

// act handles POST /servers/ID/action.
func (s *sim) act(v *vm, raw []byte, token string) (int, map[string]string, any) {
	var in map[string]any
	if json.Unmarshal(raw, &in) != nil || len(in) != 1 {
		return 400, nil, said("badRequest", 400, "There should be one action")
	}
	for name := range in {
		a, ok := actions[name]
		switch {
		case !ok:
			return 400, nil, said("badRequest", 400, "There is no such action: "+name)
		case v.refuse != "":
			return 403, nil, said("forbidden", 403, v.refuse+" "+token)
		case v.refused[name].status != 0:
			return v.refused[name].status, nil, said("error", v.refused[name].status, v.refused[name].body+" "+token)
		case v.quota && name == "unshelve":
			return 403, nil, said("forbidden", 403, "Quota exceeded for cores: Requested 4, but already used 20 of 20 cores")
		case v.Locked:
			return 409, nil, said("conflictingRequest", 409, "Instance "+v.ID+" is locked")
		case v.Task != "":
			return 409, nil, said("conflictingRequest", 409, fmt.Sprintf("Cannot '%s' instance %s while it is in task_state %s", name, v.ID, v.Task))
		case !slices.Contains(a.from, v.Status):
			return 409, nil, said("conflictingRequest", 409, fmt.Sprintf("Cannot '%s' instance %s while it is in vm_state %s", name, v.ID, strings.ToLower(v.Status)))
		}
		v.Task, v.next = a.task, a.next
		v.events = slices.Insert(v.events, 0, event{Action: name, Start: s.clock.Format("2006-01-02T15:04:05.000000")})
	}
	return 202, nil, ""
}
