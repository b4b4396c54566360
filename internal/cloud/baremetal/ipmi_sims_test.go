//go:build sims

package baremetal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/test/sims"
)

// word is a password that IPMI accepts: at most 20 characters.
const word = `planted/"+1=`

// bmcs are pyghmi BMCs in a separate process.
type bmcs struct {
	sim   *sims.Program
	ports []int
	told  chan map[string]string // states by port
	hung  chan struct{}
}

// startBMCs starts the process, which ends with the test.
func startBMCs(t *testing.T, n int) *bmcs {
	t.Helper()
	b := &bmcs{sim: sims.StartScript(t, "", "bmcs.py", fmt.Sprint(n)), told: make(chan map[string]string, 1), hung: make(chan struct{}, 1)}
	var first struct{ Ports []int }
	if line := b.sim.WaitForLine(t, time.Minute, "the BMCs listen"); json.Unmarshal([]byte(line), &first) != nil || len(first.Ports) != n {
		t.Fatalf("the BMCs listen at %s, and should be %d", line, n)
	}
	b.ports = first.Ports
	go b.read()
	t.Cleanup(func() {
		if words := b.sim.ReadStderr(); words != "" {
			t.Errorf("the BMCs complain: %s", words)
		}
	})
	b.tell(t, map[string]any{"user": user, "password": word})
	return b
}

func (b *bmcs) read() {
	for line := range b.sim.Lines {
		var said struct {
			States map[string]string
			Hung   int
		}
		if json.Unmarshal([]byte(line), &said) != nil {
			continue
		}
		if said.States != nil {
			b.told <- said.States
			continue
		}
		select {
		case b.hung <- struct{}{}:
		default:
		}
	}
}

// tell sends a command, and returns the states by port.
func (b *bmcs) tell(t *testing.T, command map[string]any) map[string]string {
	t.Helper()
	raw, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	b.sim.SendCommand(t, string(raw))
	select {
	case states := <-b.told:
		return states
	case <-time.After(cloudtest.WaitTimeout):
		t.Fatalf("waited for %s, and in vain, until the BMCs obey\n%s", cloudtest.WaitTimeout, b.sim.OutputTail())
		return nil
	}
}

// rack is the platform with hosts that each have their own BMC.
type rack struct {
	*lab
	bmcs *bmcs
	free []int
	port map[string]int // by host
}

func newRack(t *testing.T, n int) *rack {
	t.Helper()
	r := &rack{lab: labOf(nil), bmcs: startBMCs(t, n), port: map[string]int{}}
	r.free = slices.Clone(r.bmcs.ports)
	return r
}

func (r *rack) add(t *testing.T, cluster, name, role, state string) {
	t.Helper()
	port := r.free[0]
	r.free, r.port[cluster+"/"+name] = r.free[1:], port
	r.bmcs.tell(t, map[string]any{"set": port, "state": state})
	h := entry(name, role, fmt.Sprintf("ipmi://127.0.0.1:%d", port))
	h.BMC.Password = word
	r.list(cluster, h)
}

func (r *rack) list(cluster string, hosts ...hostEntry) {
	r.hosts[cluster] = append(r.hosts[cluster], hosts...)
	raw, err := json.Marshal(r.hosts[cluster])
	if err != nil {
		panic(err)
	}
	r.secrets[named(cluster+"-bmc")] = map[string]string{"hosts.yaml": string(raw), "infraID": cluster}
}

func (r *rack) step(t *testing.T) {
	t.Helper()
	r.bmcs.tell(t, map[string]any{"step": true})
	r.pass(tick)
}

// retryLostPackets repeats calls that failed because a BMC did not answer in time, as the power
// controller does. IPMI runs over UDP, and on a busy machine the simulator answers too late.
type retryLostPackets struct{ power cloud.Actuator }

func (r retryLostPackets) Observe(ctx context.Context, ref cloud.Ref) (ms cloud.Machines, err error) {
	err = retryTimeouts(ctx, func() error { ms, err = r.power.Observe(ctx, ref); return err })
	return ms, err
}

func (r retryLostPackets) Start(ctx context.Context, ref cloud.Ref) error {
	return retryTimeouts(ctx, func() error { return r.power.Start(ctx, ref) })
}

func (r retryLostPackets) Stop(ctx context.Context, ref cloud.Ref) error {
	return retryTimeouts(ctx, func() error { return r.power.Stop(ctx, ref) })
}

func retryTimeouts(ctx context.Context, call func() error) error {
	const maxCalls = 5
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == maxCalls || ctx.Err() != nil || !strings.Contains(err.Error(), "did not answer in time") {
			return err
		}
	}
}

func TestPowerWithIPMI(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		r := newRack(t, 6)
		return cloudtest.Cloud{
			Actuator: retryLostPackets{r.Actuator},
			Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
				r.add(t, infraID, "master-0", "master", "off")
				for i := range workers {
					r.add(t, infraID, fmt.Sprintf("worker-%d", i), "worker", "off")
				}
				return refOf(infraID)
			},
			Vanish: func(_ *testing.T, ref cloud.Ref, name string) {
				r.hosts[ref.Cluster.Name] = slices.DeleteFunc(r.hosts[ref.Cluster.Name], func(w hostEntry) bool { return w.Name == name })
				r.list(ref.Cluster.Name)
			},
			Step: func() { r.step(t) },
			// IPMI only reports on and off, so no state is odd. Each host has its own BMC, so there
			// are no pages, and hundreds of hosts would need hundreds of servers.
			Faults: cloudtest.Faults{
				Throttle: func(t *testing.T, n int) { r.bmcs.tell(t, map[string]any{"throttle": n}) },
				Expire:   func(t *testing.T) { r.bmcs.tell(t, map[string]any{"user": user, "password": "another"}) },
				Refuse: func(t *testing.T, ref cloud.Ref, name string) {
					r.bmcs.tell(t, map[string]any{"refuse": r.port[ref.Cluster.Name+"/"+name]})
				},
				Hang: func(t *testing.T) <-chan struct{} {
					r.bmcs.tell(t, map[string]any{"hang": true})
					return r.bmcs.hung
				},
				Planted: []string{word},
			},
		}
	})
}

func TestAGuestIsAskedWithIPMIAndThenPoweredOff(t *testing.T) {
	r := newRack(t, 2)
	r.add(t, infraID, "master-0", "master", "on")
	r.add(t, infraID, "worker-0", "worker", "on")
	r.bmcs.tell(t, map[string]any{"deaf": r.port[infraID+"/master-0"]})
	r.bmcs.tell(t, map[string]any{"simple": r.port[infraID+"/worker-0"]})

	r.stop(t, r.time.Now()) // the worker's BMC cannot shut down a guest, so the host is powered off
	r.sees(t, "master-0 Running, worker-0 Stopping")
	for range 3 {
		r.step(t)
	}
	r.sees(t, "master-0 Running, worker-0 Stopped")
	r.stop(t, r.time.Now())
	r.sees(t, "master-0 Stopping, worker-0 Stopped")
	r.pass(shutdownGrace)
	r.stop(t, r.time.Now())
	for range 3 {
		r.step(t)
	}
	r.sees(t, "master-0 Stopped, worker-0 Stopped")
}

// A BMC's proof that it knows the password allows a dictionary attack, and the library's error
// contains it.
func TestAWrongPasswordOfIPMIIsToldWithoutTheProof(t *testing.T) {
	r := newRack(t, 1)
	r.add(t, infraID, "master-0", "master", "on")
	r.bmcs.tell(t, map[string]any{"user": user, "password": "another"})
	_, err := r.Observe(t.Context(), refOf(infraID))
	wantFault(t, err, fault.Denied, "rejects the username and password in key hosts.yaml of Secret ns/c-12345-bmc")
	if strings.Contains(err.Error(), "authcode") {
		t.Errorf("the proof is in: %v", err)
	}
}

// ipmitool and our library see and do the same.
func TestIpmitoolSeesTheSame(t *testing.T) {
	r := newRack(t, 1)
	r.add(t, infraID, "master-0", "master", "off")
	tool := func(args ...string) string {
		args = append([]string{"-I", "lanplus", "-C", "3", "-L", "OPERATOR", "-H", "127.0.0.1", "-p", fmt.Sprint(r.bmcs.ports[0]), "-U", user, "-P", word, "chassis", "power"}, args...)
		out, content := sims.RunClient(t, nil, "ipmitool", args...)
		if !content {
			t.Fatalf("ipmitool is not content: %s", out)
		}
		return strings.TrimSpace(out)
	}
	for _, c := range []struct {
		do         func()
		tool, ours string
	}{
		{func() {}, "Chassis Power is off", "master-0 Stopped"},
		{func() { tool("on") }, "Chassis Power is on", "master-0 Running"},
		{func() { r.stop(t, r.time.Now()) }, "Chassis Power is off", "master-0 Stopped"},
		{func() { r.start(t) }, "Chassis Power is on", "master-0 Running"},
		{func() { tool("soft") }, "Chassis Power is off", "master-0 Stopped"},
	} {
		c.do()
		for range 3 {
			r.step(t)
		}
		if got := tool("status"); got != c.tool {
			t.Errorf("ipmitool: got %q, want %q", got, c.tool)
		}
		r.sees(t, c.ours)
	}
}
