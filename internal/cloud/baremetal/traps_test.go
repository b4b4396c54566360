package baremetal

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/baremetal/redfishtest"
	"hotspare.io/hotspare/internal/fault"
)

// one adds a control plane host and a worker.
func (l *lab) one(master, worker redfishtest.System) {
	l.add(infraID, "master-0", "master", master)
	l.add(infraID, "worker-0", "worker", worker)
}

var running = redfishtest.System{State: redfishtest.On}

// wantFault fails the test unless err has that kind and contains all words.
func wantFault(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("got %v, which is %s, want %s", err, fault.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("the password is in: %v", err)
	}
}

func (l *lab) fails(t *testing.T, kind fault.Kind, words ...string) {
	t.Helper()
	ms, err := l.Observe(t.Context(), refOf(infraID))
	if err == nil {
		t.Fatalf("saw %v", ms)
	}
	wantFault(t, err, kind, words...)
}

// The library connects with any password: the service root requires no authentication.
func TestAWrongPasswordIsFoundOutThoughConnectingSucceeds(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	l.bmc.AddAccount(user, "another")
	l.fails(t, fault.Denied, "observing master-0, worker-0", "key hosts.yaml of Secret ns/c-12345-bmc", "not locked")
}

func TestAnAccountThatWasRefusedIsLeftAloneForAWhile(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	l.bmc.AddAccount(user, "another")
	l.fails(t, fault.Denied, "rejects")
	l.bmc.AddAccount(user, password)
	l.pass(lockoutDelay - time.Second)
	l.fails(t, fault.Denied, "rejects")
	l.pass(time.Second)
	l.sees(t, "master-0 Running, worker-0 Running")

	l.bmc.AddAccount(user, "changed")
	l.fails(t, fault.Denied, "rejects")
	for i := range l.hosts[infraID] {
		l.hosts[infraID][i].BMC.Password = "changed"
	}
	l.list(infraID)
	l.sees(t, "master-0 Running, worker-0 Running")
}

func TestTheStateRightAfterAResetIsNotBelieved(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{Terse: true})
	l.start(t)
	l.sees(t, "master-0 Starting")
	// A user who changes their mind now must not see it as stopped.
	l.stop(t, l.time.Now())
	l.sees(t, "master-0 Starting")
	l.settle()
	l.sees(t, "master-0 Running")
	l.stop(t, l.time.Now())
	l.sees(t, "master-0 Stopping")
	l.settle()
	l.sees(t, "master-0 Stopped")
	l.resets(t, "On c-12345-master-0", "GracefulShutdown c-12345-master-0")
}

func TestAStartThatComesToNothingIsRepeated(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{Terse: true})
	l.start(t)
	l.bmc.ChangeSystem(t, "c-12345-master-0", func(s *redfishtest.System) { *s = redfishtest.System{ID: s.ID, State: redfishtest.Off} })
	l.start(t)
	l.pass(settleDelay)
	l.sees(t, "master-0 Stopped")
	l.start(t)
	l.resets(t, "On c-12345-master-0", "On c-12345-master-0")
}

func TestAStartWaitsForAShutdownThatGoesOn(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", running)
	l.stop(t, l.time.Now())
	l.start(t)
	l.sees(t, "master-0 Stopping")
	l.settle()
	l.start(t)
	l.settle()
	l.sees(t, "master-0 Running")
	l.resets(t, "GracefulShutdown c-12345-master-0", "On c-12345-master-0")
}

func TestAGuestThatDoesNotShutDownIsPoweredOffAfterTheGrace(t *testing.T) {
	l := newLab(t)
	l.one(running, redfishtest.System{State: redfishtest.On, Deaf: true})
	began := l.time.Now()
	l.stop(t, began)
	l.pass(shutdownGrace - time.Second)
	l.stop(t, began)
	l.resets(t, "GracefulShutdown c-12345-worker-0")
	l.pass(time.Second)
	l.stop(t, began)
	l.sees(t, "master-0 Running, worker-0 Stopping")
	l.settle()
	l.stop(t, began)
	l.settle()
	l.sees(t, "master-0 Stopped, worker-0 Stopped")
	l.resets(t, "GracefulShutdown c-12345-worker-0", "ForceOff c-12345-worker-0", "GracefulShutdown c-12345-master-0")
}

func TestARestartAsksAgainAndForgetsNoPatienceForEver(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{State: redfishtest.On, Deaf: true})
	began := l.time.Now()
	const life = shutdownGrace - time.Minute // shorter than the grace period
	for range lateHibernation/life - 1 {
		l.stop(t, began)
		l.pass(life)
		l.stop(t, began)
		l.restart()
	}
	const ask, off = "GracefulShutdown c-12345-master-0", "ForceOff c-12345-master-0"
	l.resets(t, ask, ask, ask, ask)
	l.stop(t, began)
	l.pass(life)
	l.stop(t, began)
	l.resets(t, ask, ask, ask, ask, ask, off)
}

func TestAHostStuckBetweenTwoStatesIsPoweredOff(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{State: redfishtest.PoweringOff})
	l.stop(t, l.time.Now())
	l.pass(shutdownGrace)
	l.resets(t)
	l.stop(t, l.time.Now())
	l.resets(t, "ForceOff c-12345-master-0")
}

func TestAPausedHostIsResumed(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{State: redfishtest.Paused, Offered: []string{"On", "Resume", "ForceOff"}})
	l.start(t)
	l.settle()
	l.sees(t, "master-0 Running")
	l.resets(t, "Resume c-12345-master-0")
}

func TestOnlyWhatIsOfferedIsAskedAndNoButtonIsPushed(t *testing.T) {
	for name, c := range map[string]struct {
		sys         redfishtest.System
		start, stop string
	}{
		"said with the system":              {redfishtest.System{}, "On", "GracefulShutdown"},
		"said on a page of its own":         {redfishtest.System{ByInfo: true, Offered: []string{"ForceOn", "ForceOff"}}, "ForceOn", "ForceOff"},
		"not said":                          {redfishtest.System{Silent: true}, "On", "GracefulShutdown"},
		"no On":                             {redfishtest.System{Offered: []string{"ForceOn", "GracefulShutdown", "PushPowerButton"}}, "ForceOn", "GracefulShutdown"},
		"no shutdown, so it is powered off": {redfishtest.System{Offered: []string{"On", "ForceOff", "PushPowerButton"}}, "On", "ForceOff"},
		"nothing that can be relied upon":   {redfishtest.System{Offered: []string{"PushPowerButton"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.add(infraID, "master-0", "master", c.sys)
			var want []string
			for _, do := range []struct {
				call func() error
				from string
				want string
			}{
				{func() error { return l.Start(t.Context(), refOf(infraID)) }, redfishtest.Off, c.start},
				{func() error { return l.Stop(t.Context(), refOf(infraID)) }, redfishtest.On, c.stop},
			} {
				l.bmc.ChangeSystem(t, "c-12345-master-0", func(s *redfishtest.System) { s.State = do.from })
				err := do.call()
				if do.want == "" {
					wantFault(t, err, fault.Denied, "master-0", "only PushPowerButton")
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, do.want+" c-12345-master-0")
				l.settle()
			}
			l.resets(t, want...)
		})
	}
}

func TestABMCThatIsDownHoldsUpNobody(t *testing.T) {
	for name, addresses := range map[string][]string{
		"nobody listens":       {closed(t)},
		"nobody answers":       {silent(t)},
		"with IPMI, no chance": {"ipmi://" + strings.TrimPrefix(closed(t), "redfish://")},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.requestTimeout = 100 * time.Millisecond
			l.one(redfishtest.System{}, redfishtest.System{})
			l.list(infraID, entry("worker-1", "worker", addresses[0]))
			for range 3 {
				wantFault(t, l.Start(t.Context(), refOf(infraID)), fault.Unknown, "starting worker-1: its BMC 127.0.0.1:")
				l.settle()
			}
			l.sees(t, "master-0 Running, worker-0 Running, worker-1 Unknown")
			if m := l.observe(t)[2]; !strings.Contains(m.Reason, "cannot be reached") && !strings.Contains(m.Reason, "did not answer in time") {
				t.Errorf("reason: %q", m.Reason)
			}
			// The host might be on, so the control plane waits for it, but not forever.
			ref := refOf(infraID)
			ref.Since = l.time.Now()
			wantFault(t, l.Stop(t.Context(), ref), fault.Unknown, "stopping worker-1")
			l.settle()
			wantFault(t, l.Stop(t.Context(), ref), fault.Unknown, "stopping worker-1")
			l.sees(t, "master-0 Running, worker-0 Stopped, worker-1 Unknown")
			l.pass(2 * shutdownGrace)
			wantFault(t, l.Stop(t.Context(), ref), fault.Unknown, "stopping worker-1")
			l.settle()
			l.sees(t, "master-0 Stopped, worker-0 Stopped, worker-1 Unknown")
		})
	}
}

// closed returns an address on which no server listens.
func closed(t *testing.T) string {
	t.Helper()
	c, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return "redfish://" + c.Addr().String()
}

// silent returns an address on which a server listens and does not answer.
func silent(t *testing.T) string {
	t.Helper()
	c, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return "redfish://" + c.Addr().String()
}

func TestABMCThatIsDownIsAskedOnceForAllItsHosts(t *testing.T) {
	c, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan struct{}, 100)
	go func() {
		defer close(calls)
		for {
			conn, err := c.Accept()
			if err != nil {
				return
			}
			calls <- struct{}{}
			conn.Close()
		}
	}()
	l := newLab(t)
	for i := range 6 {
		l.list(infraID, entry(fmt.Sprintf("host-%d", i), "master", fmt.Sprintf("redfish+http://%s/redfish/v1/Systems/%d", c.Addr(), i)))
	}
	l.fails(t, fault.Unknown, "observing host-0, host-1, host-2, 3 more: its BMC", "cannot be reached")
	c.Close()
	n := 0
	for range calls {
		n++
	}
	if n != 1 {
		t.Errorf("it was called %d times", n)
	}
}

func TestAWorkerThatAPersonMustSeeToHoldsUpNobody(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	l.list(infraID, entry("worker-1", "worker", l.address("typo")))
	wantFault(t, l.Stop(t.Context(), refOf(infraID)), fault.Denied, "worker-1", "/redfish/v1/Systems/typo", "correct bmc.address")
	l.settle()
	wantFault(t, l.Stop(t.Context(), refOf(infraID)), fault.Denied, "worker-1")
	l.settle()
	l.sees(t, "master-0 Stopped, worker-0 Stopped, worker-1 Unknown")
}

func TestCertificatesAreVerifiedUnlessTheHostSaysOtherwise(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	secret := l.secrets[named(infraID+"-bmc")]
	delete(secret, "ca.crt")
	l.fails(t, fault.Denied, "not trusted", "key ca.crt", "disableCertificateVerification")

	l.hosts[infraID][1].BMC.Insecure = true
	l.list(infraID)
	delete(l.secrets[named(infraID+"-bmc")], "ca.crt")
	l.sees(t, "master-0 Unknown, worker-0 Running")
}

func TestTheCertificateAuthoritiesOfTheHubAreTrusted(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	delete(l.secrets[named(infraID+"-bmc")], "ca.crt")
	var authorities cabundletest.Secret
	l.authorities = authorities.NewSource()
	authorities.SetContent([]byte("no PEM"))
	l.fails(t, fault.Denied, "not trusted", "key ca.crt of Secret "+cabundletest.Name.String())
	authorities.SetContent(l.bmc.Roots)
	l.sees(t, "master-0 Running, worker-0 Running")
}

func TestAnAnswerThatPointsElsewhereIsNotFollowed(t *testing.T) {
	heard := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.URL.Path }))
	t.Cleanup(elsewhere.Close)
	l := newLab(t)
	l.one(running, running)
	l.bmc.RedirectRequests(elsewhere.URL)
	l.fails(t, fault.Unknown, "redirects to another address")
	if len(heard) > 0 {
		t.Errorf("another server was asked for %s", <-heard)
	}
}

func TestABMCThatWantsSessionsKeepsNone(t *testing.T) {
	l := newLab(t)
	l.bmc.WantSessions()
	l.one(running, running)
	for range 2 * redfishtest.Sessions {
		l.sees(t, "master-0 Running, worker-0 Running")
	}
	l.stop(t, l.time.Now())
	if l.bmc.CountOpenSessions() != 0 || l.bmc.CountCreatedSessions() == 0 {
		t.Errorf("%d sessions of %d are left", l.bmc.CountOpenSessions(), l.bmc.CountCreatedSessions())
	}
	l.bmc.RemoveAllAccounts()
	l.fails(t, fault.Denied, "rejects the username and password")
}

func TestABMCThatTakesAccountsInRequestsGetsNoSession(t *testing.T) {
	l := newLab(t)
	l.bmc.HideBasicAuth()
	l.one(running, running)
	l.sees(t, "master-0 Running, worker-0 Running")
	if l.bmc.CountCreatedSessions() != 0 {
		t.Errorf("%d sessions were made", l.bmc.CountCreatedSessions())
	}
}

func TestTheOnlySystemNeedsNoPath(t *testing.T) {
	l := newLab(t)
	l.bmc.AddSystem(redfishtest.System{ID: "any", State: redfishtest.On})
	l.list(infraID, entry("master-0", "master", "redfish://"+l.bmc.HostPort()))
	l.sees(t, "master-0 Running")
	// The library loops forever here.
	l.bmc.RepeatSamePage()
	l.fails(t, fault.Denied, "several systems")
}

// The order of a BMC's systems is not stable, so picking the first one would be arbitrary.
func TestOneOfSeveralSystemsNeedsAPath(t *testing.T) {
	l := newLab(t)
	l.list(infraID, entry("master-0", "master", "redfish://"+l.bmc.HostPort()))
	l.fails(t, fault.Denied, "has no system")
	for i := range redfishtest.PageSize + 1 {
		l.bmc.AddSystem(redfishtest.System{ID: fmt.Sprint(i)})
	}
	l.fails(t, fault.Denied, "several systems", "bmc.address")
}

func TestWhatIsNotRedfishIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		body, want string
		kind       fault.Kind
	}{
		"a page for people":          {200, "<html>Welcome</html>", "something other than Redfish", fault.Unknown},
		"an error page for people":   {500, "<html>" + password + "</html>", "status 500", fault.Unknown},
		"JSON of something else":     {200, `[1]`, "something other than Redfish", fault.Unknown},
		"too much":                   {200, `{"a":"` + strings.Repeat("x", maxResponseSize) + `"}`, "returned an error: unexpected EOF", fault.Unknown},
		"an error that is too long":  {500, `{"error":{"code":"x","message":"` + strings.Repeat("long ", 1000) + `"}}`, "long long", fault.Unknown},
		"an error with the password": {500, `{"error":{"code":"x","message":"` + strings.ReplaceAll(password, `"`, `\"`) + ` is wrong"}}`, "… is wrong", fault.Unknown},
		"too many requests":          {429, ``, "cannot carry out the request now", fault.Wait},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			t.Cleanup(server.Close)
			l := newLab(t)
			l.list(infraID, entry("master-0", "master", "redfish+"+server.URL))
			l.fails(t, c.kind, c.want)
			if _, err := l.Observe(t.Context(), refOf(infraID)); len(err.Error()) > 500 {
				t.Errorf("%d bytes: %v", len(err.Error()), err)
			}
		})
	}
}

// A redirected power action would become a GET request, which succeeds.
func TestAnOrderIsNotRedirected(t *testing.T) {
	l := newLab(t)
	l.add(infraID, "master-0", "master", redfishtest.System{
		Refusal: &redfishtest.Error{Status: http.StatusMovedPermanently, Message: "over there", Location: "/redfish/v1/"},
	})
	wantFault(t, l.Start(t.Context(), refOf(infraID)), fault.Unknown, "starting master-0", "over there")
}

func TestHostsOfOneBMCWithTwoAccountsAreTwoVisits(t *testing.T) {
	l := newLab(t)
	l.one(running, running)
	l.hosts[infraID][1].BMC.Password = "wrong"
	l.list(infraID)
	l.sees(t, "master-0 Running, worker-0 Unknown")
	if m := l.observe(t)[1]; m.State != cloud.Unknown || !strings.Contains(m.Reason, "rejects") {
		t.Errorf("got %+v", m)
	}
}
