package openstack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

func TestWhatIsOfTheCluster(t *testing.T) {
	name := infraID + "-worker-0"
	meta := func(id string) map[string]string { return map[string]string{clusterKey: id} }
	tag := func(id string) []string { return []string{"one", clusterKey + "=" + id} }
	for what, c := range map[string]struct {
		in   server
		want string
	}{
		"by metadata, whatever its name":                  {server{Name: "x", Metadata: meta(infraID)}, "x worker"},
		"by tag, as older installers mark":                {server{Name: "x", Tags: tag(infraID)}, "x worker"},
		"not by name alone, as Hive's proposal goes":      {server{Name: name}, ""},
		"not a cluster whose infraID begins alike":        {server{Name: name + "6", Metadata: meta(infraID + "6")}, ""},
		"not a tag that begins alike":                     {server{Name: name, Tags: tag(infraID + "6")}, ""},
		"metadata of another cluster counts before a tag": {server{Name: name, Metadata: meta("other-12345"), Tags: tag(infraID)}, ""},
		"a master by its name":                            {server{Name: infraID + "-master-0", Metadata: meta(infraID)}, infraID + "-master-0 control plane"},
		"a worker that is called after a master":          {server{Name: infraID + "-worker-master-0", Metadata: meta(infraID)}, infraID + "-worker-master-0 worker"},
		"another cluster's master is none of ours":        {server{Name: "other-master-0", Metadata: meta(infraID)}, "other-master-0 worker"},
		"not what is deleted and could be restored":       {server{Name: name, Status: "SOFT_DELETED", Metadata: meta(infraID)}, ""},
		"not what is deleted":                             {server{Name: name, Status: "DELETED", Metadata: meta(infraID)}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t)
			l.add(vm{server: c.in})
			got := ""
			for _, m := range l.observe(t, refTo(infraID, nil)) {
				got = m.Name + map[bool]string{true: " control plane", false: " worker"}[m.ControlPlane]
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Nova's status, the state that hotspare reports, and the requests of a start and a stop.
func TestEachStatusIsMapped(t *testing.T) {
	for _, c := range []struct{ status, task, want, start, stop string }{
		{"ACTIVE", "", "Running", "", "os-stop"},
		{"PASSWORD", "updating_password", "Running", "", "os-stop"},
		{"MIGRATING", "migrating", "Running", "", "os-stop"},
		{"ACTIVE", "image_snapshot", "Running", "", "os-stop"},
		{"BUILD", "spawning", "Starting", "", ""},
		{"BUILD", "", "Starting", "", ""},
		{"REBUILD", "rebuild_spawning", "Starting", "", ""},
		{"REBOOT", "reboot_started", "Starting", "", ""},
		{"HARD_REBOOT", "rebooting_hard", "Starting", "", ""},
		{"RESIZE", "resize_migrating", "Starting", "", ""},
		{"REVERT_RESIZE", "resize_reverting", "Starting", "", ""},
		{"SHUTOFF", "powering-on", "Starting", "", ""},
		{"SHELVED_OFFLOADED", "unshelving", "Starting", "", ""},
		{"ACTIVE", "powering-off", "Stopping", "", ""},
		{"ACTIVE", "suspending", "Stopping", "", ""},
		{"ACTIVE", "pausing", "Stopping", "", ""},
		{"ACTIVE", "shelving_image_uploading", "Stopping", "", ""},
		{"ERROR", "deleting", "Stopping", "", ""},
		{"SHUTOFF", "", "Stopped", "os-start", ""},
		{"SHUTOFF", "image_uploading", "Stopped", "os-start", ""},
		{"SHELVED", "", "Stopped", "unshelve", ""},
		{"SHELVED_OFFLOADED", "", "Stopped", "unshelve", ""},
		{"PAUSED", "", "Stopped", "unpause", "unpause"},
		{"SUSPENDED", "", "Stopped", "resume", "resume"},
		{"ERROR", "", "Failed: ERROR: Nova gives no reason: correct that, then run openstack server reboot --hard ID", "", "os-stop"},
		{"RESCUE", "", "Failed: RESCUE: the server was booted from another image: openstack server unrescue ID", "", ""},
		{"VERIFY_RESIZE", "", "Failed: VERIFY_RESIZE: the server was resized: openstack server resize confirm ID, or revert", "", ""},
		{"MOTHBALLED", "", `Unknown: Nova reports the status "MOTHBALLED", which hotspare does not know`, "", ""},
		{"UNKNOWN", "", `Unknown: Nova reports the status "UNKNOWN", which hotspare does not know`, "", ""},
		{"ACTIVE", "polishing", `Unknown: Nova reports task "polishing", which hotspare does not know`, "", ""},
	} {
		t.Run(strings.TrimSpace(c.status+" "+c.task), func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(0)
			v := l.set("master-0", c.status, c.task)
			m := l.observe(t, ref)[0]
			got := strings.TrimSuffix(string(m.State)+": "+m.Reason, ": ")
			if got = strings.ReplaceAll(got, v.ID, "ID"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			_ = l.Start(t.Context(), ref) // a 409 does not matter here
			if got := strings.Join(l.told(), " "); strings.TrimPrefix(got, "master-0 ") != c.start {
				t.Errorf("a start asks for %q, want %q", got, c.start)
			}
			l.set("master-0", c.status, c.task)
			l.calls = nil
			_ = l.Stop(t.Context(), ref) // as above
			if got := strings.Join(l.told(), " "); strings.TrimPrefix(got, "master-0 ") != c.stop {
				t.Errorf("a stop asks for %q, want %q", got, c.stop)
			}
		})
	}
}

func TestAReasonOfNovaIsTold(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.set("master-0", "ERROR", "").Fault.Message = "No valid host was found. password=hunter22"
	got := l.observe(t, ref)[0].Reason
	if !strings.Contains(got, "No valid host was found.") || strings.Contains(got, "hunter22") {
		t.Error(got)
	}
}

func TestShelvingIsForWhoAsks(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(1)
	for _, name := range []string{"master-0", "worker-0"} {
		l.set(name, "ACTIVE", "")
	}
	ref.Shelve = true
	must(t, l.Stop(t.Context(), ref))
	l.wantTold(t, "worker-0 shelve")
	l.sees(t, ref, "master-0 Running, worker-0 Stopping")
	l.Step()
	must(t, l.Stop(t.Context(), ref))
	l.Step()
	l.sees(t, ref, "master-0 Stopped, worker-0 Stopped")
	ref.Shelve = false // the annotation was removed meanwhile: shelved servers must still be unshelved
	must(t, l.Start(t.Context(), ref))
	l.Step()
	must(t, l.Start(t.Context(), ref))
	l.wantTold(t, "master-0 shelve", "master-0 unshelve", "worker-0 shelve", "worker-0 unshelve")
}

func TestAServerInErrorIsStoppedAlsoWhereOthersAreShelved(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(1)
	ref.Shelve = true
	l.set("worker-0", "ERROR", "") // Nova does not shelve such servers
	must(t, l.Stop(t.Context(), ref))
	l.wantTold(t, "worker-0 os-stop")
}

func TestAServerThatChangesAfterTheListIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		now  func(*lab, *vm)
		kind fault.Kind
		says string
	}{
		"it is stopped already":           {func(_ *lab, v *vm) { v.Status = "SHUTOFF" }, 0, ""},
		"it is being stopped":             {func(_ *lab, v *vm) { v.Task = "powering-off" }, 0, ""},
		"it has gone":                     {func(l *lab, v *vm) { l.remove(v.ID) }, 0, ""},
		"it is in error":                  {func(_ *lab, v *vm) { v.Status, v.Task = "ERROR", "" }, 0, ""},
		"a snapshot of it has begun":      {func(_ *lab, v *vm) { v.Task = "image_snapshot" }, fault.Wait, "task_state image_snapshot"},
		"it moves to another host":        {func(_ *lab, v *vm) { v.Status, v.Task = "MIGRATING", "migrating" }, fault.Wait, "task_state migrating"},
		"somebody has locked it":          {func(_ *lab, v *vm) { v.Locked = true }, fault.Denied, "openstack server unlock"},
		"somebody has locked and stopped": {func(_ *lab, v *vm) { v.Locked, v.Status = true, "SHUTOFF" }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(1)
			v := l.set("worker-0", "ACTIVE", "")
			l.meanwhile = func(call string) {
				if strings.Contains(call, "action") {
					l.meanwhile = nil
					c.now(l, v)
				}
			}
			err := l.Stop(t.Context(), ref)
			if c.says == "" {
				must(t, err)
				return
			}
			mustSay(t, err, c.kind, "stopping server c-12345-worker-0", c.says)
		})
	}
}

func TestAQuotaThatIsUsedUpIsWaitedFor(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.set("master-0", "SHELVED_OFFLOADED", "").quota = true
	err := l.Start(t.Context(), ref)
	mustSay(t, err, fault.Capacity, "c-12345-master-0", "Quota exceeded for cores", "raised")
	if fault.RetryAfter(err) != quotaDelay {
		t.Errorf("look again after %s", fault.RetryAfter(err))
	}
}

// Nova returns 400 for a marker that no longer exists.
func TestAServerThatVanishesBetweenTwoPages(t *testing.T) {
	l := newLab(t)
	l.maxLimit = 2
	ref := l.cluster(4)
	l.meanwhile = func(call string) {
		if strings.HasSuffix(call, "/servers/detail") && len(l.calls) == 3 { // a login, the first page, the second
			l.remove(l.servers[1].ID)
		}
	}
	_, err := l.Observe(t.Context(), ref)
	mustSay(t, err, fault.Wait, "was deleted while the servers were listed")
	l.sees(t, ref, "master-0 Stopped, worker-0 Stopped, worker-1 Stopped, worker-3 Stopped")
}

// Behind a proxy, Nova's own links often have the wrong host and no TLS.
func TestLinksToTheNextPageAreNotFollowed(t *testing.T) {
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a token goes to another host: %s", r.URL)
	}))
	defer trap.Close()
	l := newLab(t)
	l.maxLimit, l.linksTo = 2, trap.URL
	if got := l.observe(t, l.cluster(6)); len(got) != 7 {
		t.Errorf("saw %v", got)
	}
}

func TestAListThatDoesNotEnd(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.failure = &failure{path: "/servers/detail", status: 200, body: `{"servers":[{"id":"1","name":"x","status":"ACTIVE"}],"servers_links":[{"rel":"next","href":"http://x"}]}`}
	_, err := l.Observe(t.Context(), ref)
	mustSay(t, err, fault.Wait, "same page repeatedly")
}

// A server in a cell that is down is neither stopped nor deleted, and Nova does not report whose it
// is. Before microversion 2.69, Nova silently leaves it out.
func TestACellThatIsDownHidesServers(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(2)
	l.set("master-0", "ACTIVE", "")
	l.named(infraID + "-worker-0").down = true
	l.do(func() { l.cellDown = true })
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Wait, infraID, "a part of the cloud is down")
	}
	l.wantTold(t, "worker-1 os-start") // the control plane keeps running, because worker-0 may be running
	l.do(func() { l.cellDown = false })
	l.Step()
	l.sees(t, ref, "master-0 Running, worker-0 Stopped, worker-1 Running")
}

func TestTwoServersOfOneName(t *testing.T) {
	l := newLab(t)
	a, b := l.add(member(infraID, "worker-0")), l.add(member(infraID, "worker-0"))
	ref := refTo(infraID, nil)
	l.sees(t, ref, fmt.Sprintf("worker-0 (%s) Stopped, worker-0 (%s) Stopped", a.ID, b.ID))
	must(t, l.Start(t.Context(), ref))
	l.wantTold(t, "worker-0 os-start", "worker-0 os-start")
}

func TestATokenThatExpiresInTheMiddleIsReplaced(t *testing.T) {
	l := newLab(t)
	l.maxLimit = 2
	ref := l.cluster(4)
	l.meanwhile = func(string) {
		if len(l.calls) == 3 {
			clear(l.tokens)
			l.tokens["used"] = false // the next token must have a different name
		}
	}
	if got := l.observe(t, ref); len(got) != 5 {
		t.Errorf("saw %v", got)
	}
	if n := strings.Count(strings.Join(l.calls, "\n"), "auth/tokens"); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestAServerThatNobodyMayStopHoldsUpNobody(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(2)
	for _, name := range []string{"master-0", "worker-0", "worker-1"} {
		l.set(name, "ACTIVE", "")
	}
	l.do(func() { l.named(infraID + "-worker-0").Locked = true })
	mustSay(t, l.Stop(t.Context(), ref), fault.Denied, "worker-0", "unlock")
	l.sees(t, ref, "master-0 Running, worker-0 Running, worker-1 Stopping")
	l.Step()
	mustSay(t, l.Stop(t.Context(), ref), fault.Denied, "worker-0", "unlock")
	l.sees(t, ref, "master-0 Stopping, worker-0 Running, worker-1 Stopped")
}

func TestARequestHasADeadline(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.Actuator.requestTimeout = time.Millisecond
	l.do(func() { l.hang = make(chan struct{}) })
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Unknown, "no answer in time")
	}
}

func TestMachinesAreNotTouchedInTheStateThatIsWanted(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(1)
	must(t, l.Stop(t.Context(), ref))
	l.set("master-0", "ACTIVE", "")
	l.set("worker-0", "ACTIVE", "")
	must(t, l.Start(t.Context(), ref))
	l.wantTold(t)
}
