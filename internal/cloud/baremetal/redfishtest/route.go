package redfishtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

type object = map[string]any

func linkTo(path string) object { return object{"@odata.id": path} }

func writeJSON(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, object{"error": object{
		"code": "Base.1.18.GeneralError", "message": "A general error has occurred. See ExtendedInfo for more information.",
		"@Message.ExtendedInfo": []object{{"MessageId": "Base.1.18.Whatever", "Message": message}},
	}})
}

const (
	rootPath     = "/redfish/v1"
	systemsPath  = rootPath + "/Systems"
	sessionsPath = rootPath + "/SessionService/Sessions"
)

func (s *Server) routeRequest(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case path == "/redfish":
		allowMethod(w, r, http.MethodGet, func() { writeJSON(w, http.StatusOK, object{"v1": rootPath + "/"}) })
		return
	case path == rootPath:
		allowMethod(w, r, http.MethodGet, func() { writeJSON(w, http.StatusOK, serviceRoot()) })
		return
	case path == sessionsPath && r.Method == http.MethodPost:
		s.postSession(w, r)
		return
	}
	if !s.authorizeRequest(w, r) {
		return
	}
	rest, below := strings.CutPrefix(path, systemsPath+"/")
	switch {
	case path == systemsPath:
		allowMethod(w, r, http.MethodGet, func() { s.listSystems(w, r) })
	case strings.HasPrefix(path, sessionsPath+"/") && r.Method == http.MethodDelete:
		s.deleteSession(w, path)
	case below:
		s.serveSystem(w, r, rest)
	default:
		writeError(w, http.StatusNotFound, "The resource at the URI "+path+" was not found.")
	}
}

func allowMethod(w http.ResponseWriter, r *http.Request, method string, f func()) {
	if r.Method != method {
		writeError(w, http.StatusMethodNotAllowed, "The HTTP method is not allowed on the resource.")
		return
	}
	f()
}

func serviceRoot() object {
	return object{
		"@odata.id": rootPath + "/", "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot", "Id": "RootService", "Name": "Root Service",
		"RedfishVersion": "1.18.0", "Systems": linkTo(systemsPath), "SessionService": linkTo(rootPath + "/SessionService"),
		"Links": object{"Sessions": linkTo(sessionsPath)},
	}
}

func (s *Server) postSession(w http.ResponseWriter, r *http.Request) {
	var who struct{ UserName, Password string }
	if json.NewDecoder(r.Body).Decode(&who) != nil {
		writeError(w, http.StatusBadRequest, "The request body is malformed JSON.")
		return
	}
	token, path, err := s.createSession(who.UserName, who.Password)
	if err != nil {
		writeError(w, err.Status, err.Message)
		return
	}
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", path)
	writeJSON(w, http.StatusCreated, object{
		"@odata.id": path, "@odata.type": "#Session.v1_7_0.Session", "Id": strings.TrimPrefix(path, sessionsPath+"/"),
		"Name": "Session", "UserName": who.UserName,
	})
}

func (s *Server) deleteSession(w http.ResponseWriter, path string) {
	for token, p := range s.sessions {
		if p == path {
			delete(s.sessions, token)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	writeError(w, http.StatusNotFound, "There is no such session.")
}

func (s *Server) listSystems(w http.ResponseWriter, r *http.Request) {
	skip, _ := strconv.Atoi(r.URL.Query().Get("$skip")) // a value that is not a number counts as 0
	skip = min(max(skip, 0), len(s.systems))
	end := min(skip+PageSize, len(s.systems))
	members := []object{}
	for _, sys := range s.systems[skip:end] {
		members = append(members, linkTo(systemsPath+"/"+sys.ID))
	}
	body := object{
		"@odata.id": systemsPath, "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "Name": "Computer System Collection",
		"Members@odata.count": len(s.systems), "Members": members,
	}
	switch {
	case s.repeatPages:
		body["Members@odata.nextLink"] = r.URL.RequestURI()
	case end < len(s.systems):
		body["Members@odata.nextLink"] = fmt.Sprintf("%s?$skip=%d", systemsPath, end)
	}
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) serveSystem(w http.ResponseWriter, r *http.Request, rest string) {
	id, page, _ := strings.Cut(rest, "/")
	sys := s.findSystem(id)
	switch {
	case sys == nil:
		writeError(w, http.StatusNotFound, "The resource "+id+" was not found.")
	case page == "":
		allowMethod(w, r, http.MethodGet, func() {
			w.Header().Set("ETag", sys.currentETag())
			writeJSON(w, http.StatusOK, sys.systemBody())
		})
	case page == "ResetActionInfo" && sys.ByInfo:
		allowMethod(w, r, http.MethodGet, func() { writeJSON(w, http.StatusOK, sys.resetActionInfo()) })
	case page == "Actions/ComputerSystem.Reset":
		allowMethod(w, r, http.MethodPost, func() { s.resetSystem(w, r, sys) })
	default:
		writeError(w, http.StatusNotFound, "The resource was not found.")
	}
}

func (sys *System) currentETag() string { return fmt.Sprintf(`"%d"`, sys.version) }
func (sys *System) systemPath() string  { return systemsPath + "/" + sys.ID }

func (sys *System) offeredResets() []string {
	if len(sys.Offered) > 0 {
		return sys.Offered
	}
	return []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"}
}

func (sys *System) systemBody() object {
	reset := object{"target": sys.systemPath() + "/Actions/ComputerSystem.Reset"}
	switch {
	case sys.ByInfo:
		reset["@Redfish.ActionInfo"] = sys.systemPath() + "/ResetActionInfo"
	case !sys.Silent:
		reset["ResetType@Redfish.AllowableValues"] = sys.offeredResets()
	}
	return object{
		"@odata.id": sys.systemPath(), "@odata.type": "#ComputerSystem.v1_22_0.ComputerSystem", "Id": sys.ID, "Name": sys.ID, "SystemType": "Physical",
		"PowerState": sys.State, "Status": object{"State": "Enabled", "Health": "OK"}, "Actions": object{"#ComputerSystem.Reset": reset},
	}
}

func (sys *System) resetActionInfo() object {
	return object{
		"@odata.id": sys.systemPath() + "/ResetActionInfo", "@odata.type": "#ActionInfo.v1_4_0.ActionInfo", "Id": "ResetActionInfo", "Name": "Reset Action Info",
		"Parameters": []object{{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": sys.offeredResets()}},
	}
}

func (s *Server) resetSystem(w http.ResponseWriter, r *http.Request, sys *System) {
	var want struct{ ResetType string }
	err := json.NewDecoder(r.Body).Decode(&want)
	status, message := http.StatusNoContent, ""
	match := r.Header.Get("If-Match")
	switch {
	case err != nil:
		status, message = http.StatusBadRequest, "The request body is malformed JSON."
	case want.ResetType == "":
		status, message = http.StatusBadRequest, "The action Reset requires the parameter ResetType to be present in the request body."
	case sys.Refusal != nil:
		if sys.Refusal.Location != "" {
			w.Header().Set("Location", sys.Refusal.Location)
		}
		status, message = sys.Refusal.Status, sys.Refusal.Message
	case match != "" && match != sys.currentETag():
		status, message = http.StatusPreconditionFailed, "The ETag supplied did not match the current ETag of the resource."
	case !slices.Contains(sys.offeredResets(), want.ResetType):
		status, message = http.StatusBadRequest, "The value '"+want.ResetType+"' for the parameter ResetType is not in the list of acceptable values."
	case !sys.beginReset(want.ResetType):
		status, message = http.StatusConflict, "The request conflicts with the state "+sys.State+" of the system."
	}
	call := want.ResetType + " " + sys.ID
	if message == "" {
		s.calls = append(s.calls, call)
		w.WriteHeader(status)
		return
	}
	s.calls = append(s.calls, fmt.Sprintf("%s %d", call, status))
	writeError(w, status, message)
}

// beginReset starts the state change of a reset, and reports whether the state allows it.
func (sys *System) beginReset(reset string) bool {
	goal := map[string]string{"On": On, "ForceOn": On, "Resume": On, "ForceRestart": On, "GracefulShutdown": Off, "ForceOff": Off}[reset]
	if reset == "PushPowerButton" { // a toggle
		goal = map[string]string{On: Off, Off: On}[sys.State]
	}
	from := map[string][]string{
		"On": {Off}, "ForceOn": {Off}, "Resume": {Paused}, "ForceRestart": {On}, "GracefulShutdown": {On},
		"ForceOff": {On, PoweringOn, PoweringOff, Paused}, "PushPowerButton": {On, Off},
	}[reset]
	if goal == "" || !slices.Contains(from, sys.State) {
		return false
	}
	if reset == "GracefulShutdown" && sys.Deaf {
		return true
	}
	if sys.goal != goal { // otherwise the change is already in progress
		sys.goal, sys.ticks = goal, 0
	}
	return true
}
