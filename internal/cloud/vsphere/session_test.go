package vsphere

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	soapsession "github.com/vmware/govmomi/session"

	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/fault"
)

func (r *rig) open(want string) {
	r.Helper()
	if got := r.sessions(); got != want {
		r.Errorf("%s sessions are open, want %s", got, want)
	}
}

func TestManyCallsShareOneSessionAndCloseEndsIt(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ref := r.ref
			ref.Cluster.Name = fmt.Sprintf("cluster-%d", i)
			if _, err := r.p.Observe(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r.open("1+1")
	r.must(r.p.Close(t.Context()))
	r.open("0+0")
	if _, err := r.p.Observe(t.Context(), r.ref); err == nil {
		t.Error("observed after closing")
	}
	r.open("0+0")
}

func TestRunEndsSessionsWithItsContext(t *testing.T) {
	r := newRig(t)
	r.observe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.must(r.p.Run(ctx))
	r.open("0+0")
}

func TestAChangedSecretEndsTheOldSession(t *testing.T) {
	r := newRig(t)
	r.observe()
	before := r.sessionKeys()
	r.change("another")
	r.hub.put("creds", map[string]string{"username": testUser, "password": "another"})
	r.observe()
	r.open("1+1")
	if after := r.sessionKeys(); after[0] == before[0] {
		t.Error("the old session goes on")
	}
}

func TestASessionThatAnotherClusterNeedsOutlivesAChange(t *testing.T) {
	r := newRig(t)
	r.observe()
	other := r.ref
	other.Cluster.Name = "other"
	_, err := r.p.Observe(t.Context(), other)
	r.must(err)
	before := r.sessionKeys()
	r.hub.put("creds", map[string]string{"vCenters": "- vCenter: " + r.server() + "\n  username: " + testUser + "\n  password: '" + testPassword + "'"})
	r.observe()
	if after := r.sessionKeys(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("sessions %v became %v though the account is the same", before, after)
	}
}

func TestAnExpiredSessionIsMadeAnew(t *testing.T) { //nolint:tparallel // newRig calls it
	for name, expire := range map[string]func(*rig){
		"of the machines' API": func(r *rig) {
			r.must(soapsession.NewManager(r.admin.Client).TerminateSession(r.Context(), r.sessionKeys()))
		},
		"of the tags' API": func(r *rig) {
			var once sync.Once
			r.doorman(func(w http.ResponseWriter, req *http.Request) (refused bool) {
				if strings.HasPrefix(req.URL.Path, "/rest/com/vmware/cis/tagging") {
					once.Do(func() { refused = true; w.WriteHeader(http.StatusUnauthorized) })
				}
				return refused
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.run()
			expire(r)
			r.stop()
			r.open("1+1")
			if got := r.power(r.worker); got != poweredOff {
				t.Errorf("the worker is %s", got)
			}
		})
	}
}

func TestALoginThatFailsHalfwayLeavesNothingBehind(t *testing.T) {
	r := newRig(t)
	r.doorman(func(w http.ResponseWriter, req *http.Request) bool {
		if strings.HasPrefix(req.URL.Path, "/rest") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	if _, err := r.p.Observe(t.Context(), r.ref); err == nil {
		t.Error("observed")
	}
	r.open("0+0")
	r.doorman(nil)
	r.observe()
}

func TestSessionsAreKeptWhileTheyAreUsedAndEndedAfterwards(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.p.sessions.now = func() time.Time { return now }
	r.observe()
	calls := r.count("CurrentTime")
	now = now.Add(idleTimeout / 2)
	r.p.sessions.maintainSessions(t.Context())
	r.open("1+1")
	if r.count("CurrentTime") != calls+1 {
		t.Error("the session was not kept alive")
	}
	now = now.Add(idleTimeout)
	r.p.sessions.maintainSessions(t.Context())
	r.open("0+0")
	r.observe()
	r.open("1+1")
}

func TestTendingEndsTheOtherHalfOfASessionThatHasExpired(t *testing.T) {
	r := newRig(t)
	r.observe()
	r.must(soapsession.NewManager(r.admin.Client).TerminateSession(t.Context(), r.sessionKeys()))
	r.p.sessions.maintainSessions(t.Context())
	r.open("0+0")
	r.observe()
}

func TestARefusedLoginNamesTheSecretAndNoCredential(t *testing.T) { //nolint:tparallel // newRig calls it
	r := newRig(t)
	const planted = "planted-pass\"word"
	for name, data := range map[string]map[string]string{
		"keys username and password of Secret ns/creds": {"username": testUser, "password": planted},
		"key vCenters of Secret ns/creds":               {"vCenters": `[{"vCenter":"` + r.server() + `","username":"u","password":"planted-pass\"word"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r.hub.put("creds", data)
			_, err := r.p.Observe(t.Context(), r.ref)
			if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "correct the account in "+name) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Errorf("the password is in %v", err)
			}
			r.open("0+0")
		})
	}
}

func TestAWrongPasswordIsNotTriedAgainAndAgain(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.p.sessions.now = func() time.Time { return now }
	r.hub.put("creds", map[string]string{"username": testUser, "password": "wrong"})
	tries := func(want int) {
		t.Helper()
		before := r.count("Login")
		for range 2 {
			if _, err := r.p.Observe(t.Context(), r.ref); fault.KindOf(err) != fault.Denied {
				t.Errorf("got %v", err)
			}
		}
		if got := r.count("Login") - before; got != want {
			t.Errorf("tried %d times, want %d", got, want)
		}
	}
	tries(1)
	tries(0)
	now = now.Add(lockoutDelay)
	tries(1)
	r.hub.put("creds", map[string]string{"username": testUser, "password": testPassword})
	r.observe()
}

func TestAServerThatEchoesARequestGivesNoPasswordAway(t *testing.T) {
	r := newRig(t)
	r.observe()
	r.doorman(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "cannot read "+testPassword)
		return true
	})
	_, err := r.p.Observe(t.Context(), r.ref)
	r.doorman(nil)
	if err == nil || strings.Contains(err.Error(), testPassword) || !strings.Contains(err.Error(), "cannot read …") {
		t.Errorf("got %v", err)
	}
}

func TestACenterThatCannotBeVerifiedIsRefused(t *testing.T) {
	r := newRig(t)
	r.ref = refWith("c-12345", map[string]any{"credentialsSecretRef": secretReference{"creds"}, "vCenter": r.server()})
	_, err := r.p.Observe(t.Context(), r.ref)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "certificatesSecretRef") {
		t.Errorf("got %v", err)
	}
	r.open("0+0")
}

func TestTheCertificateAuthoritiesOfTheHubAreTrusted(t *testing.T) {
	r := newRig(t)
	var authorities cabundletest.Secret
	r.p.authorities = authorities.NewSource()
	r.ref = refWith("c-12345", map[string]any{"credentialsSecretRef": secretReference{"creds"}, "vCenter": r.server()})
	authorities.SetContent([]byte("no PEM"))
	_, err := r.p.Observe(t.Context(), r.ref)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "key ca.crt of Secret "+cabundletest.Name.String()) {
		t.Errorf("while the Secret is malformed: %v", err)
	}
	// The rejected login is remembered for five minutes, but only for the same credentials and
	// certificates.
	authorities.SetContent(r.ca())
	if _, err := r.p.Observe(t.Context(), r.ref); err != nil {
		t.Errorf("with the vCenter's certificate: %v", err)
	}
}

func TestACenterThatDoesNotAnswerIsAnErrorInTheEnd(t *testing.T) {
	r := newRig(t)
	r.observe()
	for _, one := range r.p.sessions.open {
		if c := one.conn; c.rest.Timeout != requestTimeout || c.vim.Timeout != requestTimeout {
			t.Errorf("requests may take %s and %s", c.rest.Timeout, c.vim.Timeout)
		}
		one.conn.rest.Timeout = 50 * time.Millisecond
	}
	r.hang()
	if _, err := r.p.Observe(t.Context(), r.ref); err == nil || fault.KindOf(err) != fault.Unknown {
		t.Errorf("got %v", err)
	}
	for _, one := range r.p.sessions.open {
		one.conn.rest.Timeout = requestTimeout // the logout at the end may take longer on a busy machine
	}
}
