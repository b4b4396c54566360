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

// crowd is how many workers are too many for two pages of any list.
const crowd = 210

func turnsBack(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	s.start(ref)
	s.reach(ref, cloud.Stopped, s.stop)
}

func turnsOn(s *suite) {
	ref := s.running(2)
	s.stop(ref)
	s.reach(ref, cloud.Running, s.start)
}

func hundreds(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	s.Many(s.T, ref, crowd)
	if got := s.observe(ref); len(got) != crowd+2 || !got.All(cloud.Stopped) {
		s.Fatalf("saw %d machines, want %d, stopped: %v", len(got), crowd+2, got)
	}
	s.reach(ref, cloud.Running, s.start)
	s.reach(ref, cloud.Stopped, s.stop)
}

func throttled(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	for what, call := range s.calls(ref) {
		s.Throttle(s.T, 1)
		err := call(s.Context())
		if err == nil {
			continue // it has tried again by itself
		}
		s.discreet(err.Error())
		if fault.Of(err) != fault.Wait || fault.After(err) <= 0 {
			s.Errorf("%s: %v is %v, after %s: nobody knows when to try again", what, err, fault.Of(err), fault.After(err))
		}
	}
	s.reach(ref, cloud.Running, s.start)
}

func expired(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	s.Expire(s.T)
	for what, call := range s.calls(ref) {
		err := call(s.Context())
		if fault.Of(err) != fault.Denied {
			s.Errorf("%s with expired credentials: %v is %v, want denied", what, err, fault.Of(err))
			continue
		}
		s.discreet(err.Error())
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

func refusedStart(s *suite) {
	ref := s.Create(s.T, "c-12345", 3)
	bad := s.worker(ref)
	s.Refuse(s.T, ref, bad)
	s.refused(ref, bad, "start", s.Power.Start, cloud.Running)
}

func refusedStop(s *suite) {
	ref := s.running(3)
	bad := s.worker(ref)
	s.Refuse(s.T, ref, bad)
	s.refused(ref, bad, "stop", s.Power.Stop, cloud.Stopped)
}

// refused repeats a call until all machines but one are in state want. That one
// must be named in an error.
func (s *suite) refused(ref cloud.Ref, bad, verb string, call func(context.Context, cloud.Ref) error, want cloud.State) {
	s.Helper()
	said := ""
	try := func(cloud.Ref) {
		err := call(s.Context(), ref)
		if err == nil {
			return
		}
		s.discreet(err.Error())
		said = err.Error()
	}
	s.until(ref, "only "+bad+" does not "+verb, try, func(ms cloud.Machines) bool {
		return slices.Equal(ms.Lagging(want), []string{bad})
	})
	if try(ref); !strings.Contains(said, bad) {
		s.Errorf("the error does not name %s: %q", bad, said)
	}
}

func odd(s *suite) {
	ref := s.Create(s.T, "c-12345", 2)
	bad := s.worker(ref)
	s.Odd(s.T, ref, bad)
	strange := func(ms cloud.Machines) bool {
		return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return m.Name == bad && m.State == cloud.Unknown })
	}
	if got := s.observe(ref); !strange(got) {
		s.Fatalf("want %s Unknown, got %v", bad, got)
	}
	got := s.until(ref, "all others run", s.tryStart, func(ms cloud.Machines) bool {
		return slices.Equal(ms.Lagging(cloud.Running), []string{bad})
	})
	if !strange(got) {
		s.Errorf("want %s Unknown still, got %v", bad, got)
	}
}

func hung(s *suite) {
	ref := s.Create(s.T, "c-12345", 1)
	arrived := s.Hang(s.T)
	for what, call := range s.calls(ref) {
		ctx, cancel := context.WithCancel(s.Context())
		ended := make(chan error, 1)
		go func() { ended <- call(ctx) }()
		s.hear(arrived, what+" has not reached the platform")
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				s.Errorf("%s ended with %v, want that it was cancelled", what, err)
			}
		case <-time.After(Patience):
			s.Fatalf("%s goes on after its context has ended", what)
		}
	}
}

// hear waits for something to arrive.
func (s *suite) hear(c <-chan struct{}, otherwise string) {
	s.Helper()
	select {
	case <-c:
	case <-time.After(Patience):
		s.Fatal(otherwise)
	}
}

// calls are what a controller asks of a platform.
func (s *suite) calls(ref cloud.Ref) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"observing": func(ctx context.Context) error { _, err := s.Power.Observe(ctx, ref); return err },
		"starting":  func(ctx context.Context) error { return s.Power.Start(ctx, ref) },
		"stopping":  func(ctx context.Context) error { return s.Power.Stop(ctx, ref) },
	}
}

// discreet fails the test if a text for users has a part of the credentials.
func (s *suite) discreet(text string) {
	s.Helper()
	for _, secret := range s.Planted {
		if strings.Contains(text, secret) {
			s.Errorf("a secret is told: %s", text)
		}
	}
}
