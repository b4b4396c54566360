package hostfacts

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/embedded/nodeprograms"
)

// lacksNAT is a packet filter that runs, on a kernel without the table nat.
const lacksNAT = program(`#!/bin/sh
case "$*" in
--version) echo v1.8.9 ;;
*) echo "can't initialize the table: $XTABLES_LOCKFILE" >&2; echo "Perhaps your kernel needs to be upgraded." >&2; exit 3 ;;
esac
`)

func TestAPacketFilterThatRunsMayLackTheTableNAT(t *testing.T) {
	for name, c := range map[string]struct {
		files         map[string]any
		iptables, nft string
	}{
		"both work":             {map[string]any{"usr/sbin/iptables": prints("v1"), "usr/sbin/nft": prints("v1")}, "", ""},
		"only nft works":        {map[string]any{"usr/sbin/iptables": lacksNAT, "usr/sbin/nft": prints("v1")}, "exit status 3: can't initialize the table: /dev/null", ""},
		"there is only one":     {map[string]any{"usr/sbin/nft": lacksNAT}, "", "exit status 3: can't initialize the table: /dev/null"},
		"one that does not run": {map[string]any{"usr/sbin/iptables": program("#!/bin/sh\nexit 1\n")}, "", ""},
		"one that fails silently": {
			map[string]any{"usr/sbin/iptables": program("#!/bin/sh\n[ \"$*\" = --version ]\n")}, "exit status 1", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, c.files)
			found := h.readPrograms(t.Context())
			h.tryKernelFeatures(t.Context(), found)
			if got := found[doctor.IPTables].LacksErr; got != c.iptables {
				t.Errorf("iptables: %q, want %q", got, c.iptables)
			}
			if got := found[doctor.NFT].LacksErr; got != c.nft {
				t.Errorf("nft: %q, want %q", got, c.nft)
			}
			if len(found) != len(c.files) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestTheTrialsWorkOnThisKernel tries the packet filter of this machine.
func TestTheTrialsWorkOnThisKernel(t *testing.T) {
	h := newHost(t, nil)
	h.root, h.isolate = "/", isolate
	for program := range nodeprograms.KernelFeatures {
		path := h.findProgram(program)
		if path == "" {
			t.Logf("%s is missing", program)
			continue
		}
		skipUnlessIsolated(t, h.runIsolated(t.Context(), path, "--version"))
		lacks, reason := h.findLackingFeature(t.Context(), program, path)
		if regexp.MustCompile("(?i)bad|unknown|invalid|syntax|couldn't load|usage").MatchString(reason) {
			t.Errorf("the trial of %s is wrong: %s", lacks, reason)
		}
		t.Logf("%s lacks %q (%s)", path, lacks, reason)
	}
}

func TestAPacketFilterThatHangsHasAFewSeconds(t *testing.T) {
	h := newHost(t, map[string]any{"usr/sbin/nft": program("#!/bin/sh\nexec sleep 600\n")})
	h.timeout = 20 * time.Millisecond
	found := map[string]doctor.Program{doctor.NFT: {Path: "/usr/sbin/nft"}}
	h.tryKernelFeatures(t.Context(), found)
	if got := found[doctor.NFT].LacksErr; got != "no answer after 20ms" {
		t.Errorf("got %q", got)
	}
}

func TestTheReasonOfAProgramIsCut(t *testing.T) {
	h := newHost(t, map[string]any{"usr/sbin/nft": program("#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x >&2\nexit 1\n")})
	if err := h.runIsolated(t.Context(), "/usr/sbin/nft"); err == nil || len(err.Error()) > 2*maxReason {
		t.Errorf("got %v", err)
	}
}

func TestWhetherTheKernelHasVeth(t *testing.T) {
	const kernel = "6.1.0"
	refuses := program("#!/bin/sh\necho 'RTNETLINK answers: Operation not supported' >&2\nexit 2\n")
	modules := func(all string) map[string]any { return map[string]any{"lib/modules/6.1.0/modules.dep": file(all)} }
	for name, c := range map[string]struct {
		user    int
		files   map[string]any
		created error
		want    doctor.Support
		reason  string
	}{
		"root":                             {0, nil, nil, doctor.Supported, ""},
		"root, on a kernel without":        {0, map[string]any{"usr/sbin/ip": prints("")}, unix.EOPNOTSUPP, doctor.Unsupported, "operation not supported"},
		"a user with ip":                   {1000, map[string]any{"usr/sbin/ip": prints("")}, unix.EPERM, doctor.Supported, ""},
		"a user with ip, on such a kernel": {1000, map[string]any{"usr/sbin/ip": refuses}, nil, doctor.Unsupported, "exit status 2: RTNETLINK answers: Operation not supported"},
		"a user without ip, and a module":  {1000, modules("kernel/drivers/net/veth.ko.xz:\n"), unix.EPERM, doctor.Supported, ""},
		"a user without ip, and no module": {1000, modules("kernel/drivers/net/tun.ko.xz:\n"), nil, doctor.Unsupported, "there is no module veth"},
		"a user without ip and modules":    {1000, nil, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, c.files)
			h.createVeth = func() error { return c.created }
			got, reason := h.tryVeth(t.Context(), &doctor.Facts{UserID: c.user, Kernel: kernel})
			if got != c.want || reason != c.reason {
				t.Errorf("%q, %q, want %q, %q", got, reason, c.want, c.reason)
			}
		})
	}
}

func TestNothingIsTriedWithoutTheRightTo(t *testing.T) {
	h := newHost(t, map[string]any{
		"proc/self/status":  file("CapEff:\t0000000000000000\n"),
		"usr/sbin/iptables": lacksNAT,
	})
	h.createVeth = func() error { return errors.New("it was tried") }
	var f doctor.Facts
	h.addSystemFacts(t.Context(), &f)
	if got := f.Programs[doctor.IPTables].LacksErr; got != "" || f.Veth != "" || f.VethError != "" {
		t.Errorf("nat %q, veth %q, %q", got, f.Veth, f.VethError)
	}
}

// skipUnlessIsolated skips a test that needs the right to create network namespaces.
func skipUnlessIsolated(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this user may not create network namespaces")
	}
}

func TestAProgramIsTriedInANetworkOfItsOwn(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Skip(err)
	}
	h := newHost(t, map[string]any{"usr/sbin/nft": program("#!/bin/sh\nreadlink /proc/self/ns/net >&2\nexit 1\n")})
	h.isolate = isolate
	err = h.runIsolated(t.Context(), "/usr/sbin/nft")
	skipUnlessIsolated(t, err)
	if err == nil || !strings.Contains(err.Error(), "net:[") || strings.Contains(err.Error(), own) {
		t.Errorf("this process is in %s, and the program: %v", own, err)
	}
}

func TestCreatingVethLeavesNothing(t *testing.T) {
	before := interfaces(t)
	err := createVeth()
	skipUnlessIsolated(t, err)
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
	if after := interfaces(t); after != before {
		t.Errorf("this machine had the interfaces %q, and has %q", before, after)
	}
}

func interfaces(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		if strings.HasPrefix(one.Name, "hotspare") { // others come and go
			names = append(names, one.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestATrialEndsWithItsCaller(t *testing.T) {
	h := newHost(t, map[string]any{"usr/sbin/nft": program("#!/bin/sh\nexec sleep 600\n")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.runIsolated(ctx, "/usr/sbin/nft"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
