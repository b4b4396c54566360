package cloudtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// manyWorkers is a number of workers that does not fit on two pages of any list.
const manyWorkers = 210

func stopsWhileStarting(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	s.startCluster(ref)
	s.reachState(ref, cloud.Stopped, s.stopCluster)
}

func startsWhileStopping(s *suite) {
	ref := s.runningCluster(2)
	s.stopCluster(ref)
	s.reachState(ref, cloud.Running, s.startCluster)
}

func handlesHundreds(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	s.Many(s.T, ref, manyWorkers)
	if got := s.observeMachines(ref); len(got) != manyWorkers+2 || !got.AllIn(cloud.Stopped) {
		s.Fatalf("saw %d machines, want %d, stopped: %v", len(got), manyWorkers+2, got)
	}
	s.reachState(ref, cloud.Running, s.startCluster)
	s.reachState(ref, cloud.Stopped, s.stopCluster)
}

func retriesThrottledCalls(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	for what, call := range s.powerCalls(ref) {
		s.Throttle(s.T, 1)
		err := call(s.Context())
		if err == nil {
			continue // the platform has retried automatically
		}
		s.checkSecrets(err.Error())
		if fault.KindOf(err) != fault.Wait || fault.RetryAfter(err) <= 0 {
			s.Errorf("%s: %v is %v, after %s: the time of the next attempt is unknown", what, err, fault.KindOf(err), fault.RetryAfter(err))
		}
	}
	s.reachState(ref, cloud.Running, s.startCluster)
}

func deniesExpiredCredentials(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	s.Expire(s.T)
	for what, call := range s.powerCalls(ref) {
		err := call(s.Context())
		if fault.KindOf(err) != fault.Denied {
			s.Errorf("%s with expired credentials: %v is %v, want denied", what, err, fault.KindOf(err))
			continue
		}
		s.checkSecrets(err.Error())
		secret := ref.Platform.Settings().CredentialsSecretRef
		if secret == nil {
			continue
		}
		for _, word := range []string{secret.Name, ref.Cluster.Namespace} {
			if !strings.Contains(err.Error(), word) {
				s.Errorf("%s: the error does not name Secret %s of namespace %s: %v", what, secret.Name, ref.Cluster.Namespace, err)
			}
		}
	}
}

func startsAllButRefused(s *suite) {
	ref := s.Create(s.T, "c-12345", 3)
	bad := s.findWorker(ref)
	s.Refuse(s.T, ref, bad)
	s.expectRefusal(ref, bad, "start", s.Actuator.Start, cloud.Running)
}

func stopsAllButRefused(s *suite) {
	ref := s.runningCluster(3)
	bad := s.findWorker(ref)
	s.Refuse(s.T, ref, bad)
	s.expectRefusal(ref, bad, "stop", s.Actuator.Stop, cloud.Stopped)
}

// expectRefusal repeats a call until all machines but one are in state want. An error must name the
// remaining machine.
func (s *suite) expectRefusal(ref cloud.Ref, bad, verb string, call func(context.Context, cloud.Ref) error, want cloud.State) {
	s.Helper()
	said := ""
	try := func(cloud.Ref) {
		err := call(s.Context(), ref)
		if err == nil {
			return
		}
		s.checkSecrets(err.Error())
		said = err.Error()
	}
	s.repeatUntil(ref, "only "+bad+" does not "+verb, try, func(ms cloud.Machines) bool {
		return slices.Equal(ms.NamesNotIn(want), []string{bad})
	})
	if try(ref); !strings.Contains(said, bad) {
		s.Errorf("the error does not name %s: %q", bad, said)
	}
}

func reportsUnknownState(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	bad := s.findWorker(ref)
	s.Odd(s.T, ref, bad)
	strange := func(ms cloud.Machines) bool {
		return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return m.Name == bad && m.State == cloud.Unknown })
	}
	if got := s.observeMachines(ref); !strange(got) {
		s.Fatalf("want %s Unknown, got %v", bad, got)
	}
	got := s.repeatUntil(ref, "all others run", s.tryStart, func(ms cloud.Machines) bool {
		return slices.Equal(ms.NamesNotIn(cloud.Running), []string{bad})
	})
	if !strange(got) {
		s.Errorf("want %s Unknown still, got %v", bad, got)
	}
}

func endsHungCalls(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	arrived := s.Hang(s.T)
	for what, call := range s.powerCalls(ref) {
		ctx, cancel := context.WithCancel(s.Context())
		ended := make(chan error, 1)
		go func() { ended <- call(ctx) }()
		s.waitForCall(arrived, what+" has not reached the platform")
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				s.Errorf("%s ended with %v, want that it was cancelled", what, err)
			}
		case <-time.After(WaitTimeout):
			s.Fatalf("%s continues after its context has ended", what)
		}
	}
}

// waitForCall waits for a value on c.
func (s *suite) waitForCall(c <-chan struct{}, otherwise string) {
	s.Helper()
	select {
	case <-c:
	case <-time.After(WaitTimeout):
		s.Fatal(otherwise)
	}
}

// powerCalls returns the calls that a controller makes to a platform.
func (s *suite) powerCalls(ref cloud.Ref) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"observing": func(ctx context.Context) error { _, err := s.Actuator.Observe(ctx, ref); return err },
		"starting":  func(ctx context.Context) error { return s.Actuator.Start(ctx, ref) },
		"stopping":  func(ctx context.Context) error { return s.Actuator.Stop(ctx, ref) },
	}
}

// checkSecrets fails the test if a text for users contains a part of the credentials.
func (s *suite) checkSecrets(text string) {
	s.Helper()
	for _, secret := range s.Planted {
		if strings.Contains(text, secret) {
			s.Errorf("a secret is revealed: %s", text)
		}
	}
}
