package openstack

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

var _ cloud.DepthReporter = Actuator{}

// ReportDepths implements cloud.DepthReporter: servers can be paused and suspended.
func (Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{
		{
			Depth:  cloud.DepthFreeze,
			Limits: "A paused server keeps its memory and its processors reserved on its host, and is lost when the host restarts.",
		},
		{
			Depth: cloud.DepthSuspend,
			Limits: "A suspended server keeps its memory on the disk of its host, and its share of the quota. " +
				"Nova does not suspend servers with accelerators, encrypted memory (SEV) or, in older versions, vDPA ports.",
		},
	}
}

// sleepAction is a request that puts a server to sleep and keeps its memory.
type sleepAction struct {
	// name is the name of the action in Nova's records.
	name, doing string
	do          func(context.Context, *gophercloud.ServiceClient, string) error
}

// sleepActions has the action for each depth other than stop.
var sleepActions = map[cloud.Depth]sleepAction{
	cloud.DepthFreeze: {"pause", "pausing", func(ctx context.Context, nova *gophercloud.ServiceClient, id string) error {
		return servers.Pause(ctx, nova, id).ExtractErr()
	}},
	cloud.DepthSuspend: {"suspend", "suspending", func(ctx context.Context, nova *gophercloud.ServiceClient, id string) error {
		return servers.Suspend(ctx, nova, id).ExtractErr()
	}},
}

// putToSleep takes the next step to put a server, which users know as name, to sleep.
func (s *session) putToSleep(ctx context.Context, ref cloud.Ref, name string, srv *server) error {
	state, _ := srv.machineState()
	switch {
	case state == cloud.Starting, state == cloud.Failed && srv.Status != "ERROR":
		return nil // Nova would refuse: a starting server is put to sleep once it runs, and Observe reports a failed one
	case state == cloud.Stopped:
		return s.startServer(ctx, srv) // it keeps its memory, and must run before it can sleep more deeply
	}
	depth := ref.SelectDepth(func(cloud.Depth) bool { return state == cloud.Running })
	if depth == cloud.DepthStop {
		return s.stopServer(ctx, srv, ref.Shelve)
	}
	return s.keepMemory(ctx, ref.Since, name, srv, depth)
}

// keepMemory pauses or suspends a running server.
func (s *session) keepMemory(ctx context.Context, since time.Time, name string, srv *server, depth cloud.Depth) error {
	action := sleepActions[depth]
	failed, err := s.hasFailed(ctx, srv, action.name, since)
	if err != nil {
		return err
	}
	if failed {
		return cloud.RefuseDepth(depth, name, "Nova accepted to "+action.name+" it, and failed: openstack server event list "+srv.ID)
	}
	err = action.do(ctx, s.nova, srv.ID)
	if a, ok := s.parseResponseError(err); ok && refusesDepth(a) {
		return cloud.RefuseDepth(depth, name, "Nova refuses to "+action.name+" it: "+a.message)
	}
	return s.translateOutcome(ctx, powerRequest{doing: action.doing, srv: srv, becoming: cloud.Stopping, want: cloud.Stopped}, err)
}

// refusesDepth reports whether Nova would answer the same request again in the same way. For servers that it
// cannot suspend, it returns 400, 403, as for missing rights, or 409, as for a server in another state. A
// policy that reserves the action for administrators permits a stop all the same.
func refusesDepth(a responseError) bool {
	text := strings.ToLower(a.message)
	switch a.status {
	case http.StatusBadRequest, http.StatusNotImplemented:
		return true
	case http.StatusConflict:
		return strings.Contains(text, "not supported") || strings.Contains(text, "unsupported")
	case http.StatusForbidden:
		return strings.Contains(text, "policy") || strings.Contains(text, "not supported")
	}
	return false
}

// hasFailed reports whether the last action of that name, since the hibernation began, has failed: a
// hypervisor that cannot do it returns the server to ACTIVE.
func (s *session) hasFailed(ctx context.Context, srv *server, action string, since time.Time) (bool, error) {
	if since.IsZero() {
		return false, nil // this hibernation has not requested anything yet
	}
	var got struct {
		Actions []struct {
			Action  string `json:"action"`
			Message string `json:"message"`
			Start   string `json:"start_time"`
		} `json:"instanceActions"`
	}
	_, err := s.nova.Get(ctx, s.nova.ServiceURL("servers", srv.ID, "os-instance-actions"), &got, nil) //nolint:bodyclose // the SDK has read and closed it
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
		return false, nil // it was deleted
	case gophercloud.ResponseCodeIs(err, http.StatusForbidden):
		return false, fault.NewDenied("reading the events of server %s: Nova denies it: "+
			"permit GET /v2.1/servers/*/os-instance-actions to the application credential of Secret %s, key %s", srv.Name, s.secret, secretKey)
	case err != nil:
		return false, s.translateError("reading the events of server "+srv.Name, err)
	}
	for _, a := range got.Actions { // the newest first
		at, err := time.Parse("2006-01-02T15:04:05.000000", a.Start)
		if err == nil && a.Action == action {
			return a.Message != "" && cloud.IsSince(at, since), nil
		}
	}
	return false, nil
}
