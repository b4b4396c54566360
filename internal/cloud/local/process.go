package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/processtree"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
	"hotspare.io/hotspare/internal/logfile"
)

// parentPipe is an environment variable that makes a machine stop when its standard input ends.
const parentPipe = "HOTSPARE_PARENT_PIPE=1"

// startupPeriod is how long a machine needs to start. A process that exits before that could not
// start, and until then the machine does not use all of its memory.
const startupPeriod = 10 * time.Second

// lockPollInterval is how often the lock of a starting machine is checked. A node acquires it
// within 20 ms. Polling is necessary because waiting for a file lock means acquiring it.
const lockPollInterval = 10 * time.Millisecond

// process is one run of a machine, from before its program is started until it has ended. phase is
// guarded by the store's mutex.
type process struct {
	machine.Config
	dir       string
	startedAt time.Time
	phase     processPhase
	cancel    context.CancelFunc
	// pid and commands, the standard input, are set before phaseRunning. tree is set while the process is frozen.
	pid      int
	commands io.Writer
	tree     *processtree.Tree
}

// requestStop makes the process end: by SIGTERM, and by SIGKILL after a grace period. A process
// that has not been started yet is not started; one that is frozen is thawed. The caller must hold s.mu.
func (p *process) requestStop(ctx context.Context) {
	p.phase = phaseStopping
	p.cancel()
	p.thawTree(ctx)
}

// startMachineProcess starts the process of a machine in the background. The caller must hold s.mu.
// The process does not end with ctx: when the store closes, Run stops the machines in order.
func (s *Store) startMachineProcess(ctx context.Context, m observedMachine) *process {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{Config: m.Config, dir: m.dir, startedAt: time.Now(), phase: phaseStarting, cancel: cancel}
	s.procs[m.dir] = p
	s.broadcastChange()
	s.runningProcesses.Go(func() {
		defer cancel()
		s.recordProcessExit(own, p, s.runMachineProcess(own, p))
	})
	return p
}

// recordProcessExit removes an ended process from the store. It records how the process ended only
// if the process was not asked to stop.
func (s *Store) recordProcessExit(ctx context.Context, p *process, end exitResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.procs, p.dir)
	if p.tree != nil && ctx.Err() == nil {
		s.freezeObstacles[p.dir] = "its process was killed while it was frozen"
	}
	p.thawTree(ctx) // the others of its processes end with it, if they can
	s.updateAddress(ctx, p.InfraID)
	if ctx.Err() == nil {
		s.lastExits[p.dir] = end
		logr.FromContextOrDiscard(ctx).Info("ended unexpectedly", "machine", p.Name, "state", end.state, "reason", end.reason)
	}
	if ctx.Err() != nil || end.state == cloud.Stopped {
		s.notifyRunStateChange(p.InfraID)
	}
	s.broadcastChange()
	s.enqueueCluster(p.InfraID)
}

// runMachineProcess runs the machine's program and returns how it ended.
func (s *Store) runMachineProcess(ctx context.Context, p *process) exitResult {
	if err := endLockHolder(machine.LockPath(p.dir), s.grace); err != nil {
		return newFailedResult(err)
	}
	s.removeControlGroups(ctx, p) // a hub that was killed leaves them, and no process can join some of them
	if ctx.Err() != nil {
		s.removeControlGroups(context.WithoutCancel(ctx), p) // the request to stop ended the wait for them
		return exitResult{}
	}
	if err := checkStartable(p); err != nil {
		return newFailedResult(err)
	}
	log, err := logfile.Open(machine.LogPath(p.dir), maxLogSize)
	if err != nil {
		return newFailedResult(err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	before, err := log.Stat()
	if err != nil {
		return newFailedResult(err)
	}
	cmd := s.machineCommand(ctx, p)
	if err := s.passAPISocket(cmd, p); err != nil {
		return newFailedResult(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	commands, err := cmd.StdinPipe() // cmd keeps the pipe open until the process ends
	if err != nil {
		return newFailedResult(err)
	}
	if err := startIsolated(ctx, cmd, p); err != nil {
		return newFailedResult(err)
	}
	s.recordStarted(p, cmd.Process.Pid, commands)
	ran, err := s.waitForProcessExit(ctx, cmd, p)
	s.removeControlGroups(context.WithoutCancel(ctx), p)
	end := p.classifyExit(ran, err, readLastLogLine(log.Name(), before.Size()))
	_, err = fmt.Fprintf(log, "%s hotspare: the process of %s ended: %v\n", time.Now().UTC().Format(time.RFC3339), p.Name, cmd.ProcessState)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "dropped a line of a log", "machine", p.Name)
	}
	return end
}

// machineCommand returns the command that runs the machine's program. The process gets its own
// process group, so that Ctrl-C in a terminal reaches only hotspare, which then stops the machines
// in order.
func (s *Store) machineCommand(ctx context.Context, p *process) *exec.Cmd {
	args := slices.Concat(s.command[1:], []string{"machine", "run", "--dir", p.dir})
	cmd := exec.CommandContext(ctx, s.command[0], args...)
	cmd.Env = append(os.Environ(), parentPipe)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.RunsContainers() {
		isolateProcess(cmd.SysProcAttr)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = s.grace
	return cmd
}

// startIsolated starts a machine's command. Without the rights of root, a machine that runs containers
// gets the IDs of its user namespace, for which its program waits.
func startIsolated(ctx context.Context, cmd *exec.Cmd, p *process) error {
	inUserNamespace := p.RunsContainers() && usernamespace.IsNeeded()
	if inUserNamespace {
		usernamespace.Configure(cmd)
	}
	if err := startFromLastingThread(cmd, timerSlack(p.Config)); err != nil {
		return err
	}
	if !inUserNamespace {
		return nil
	}
	if err := usernamespace.Map(ctx, cmd.Process.Pid); err != nil {
		_, _ = cmd.Process.Kill(), cmd.Wait() // the error says why it cannot run
		return err
	}
	return nil
}

// timerSlack returns how late the timers of a machine's process may be. A machine that runs containers starts them, and
// they would inherit it.
func timerSlack(c machine.Config) time.Duration {
	if c.RunsContainers() {
		return 0
	}
	return idleTimerSlack
}

// removeControlGroups removes what a machine that runs containers leaves in the kernel, and waits until
// that is possible. An error is not lost: the groups are removed again when the machine is destroyed.
func (s *Store) removeControlGroups(ctx context.Context, p *process) {
	if err := s.removeCgroupsWhenEmpty(ctx, p.Config, s.removeCgroupsOf); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "will remove them with the machine", "machine", p.Name)
	}
}

// waitForProcessExit waits until a started process ends and records when it acquires its machine's
// lock. It returns whether the process ever held the lock.
func (s *Store) waitForProcessExit(ctx context.Context, cmd *exec.Cmd, p *process) (bool, error) {
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(lockPollInterval)
	defer tick.Stop()
	ran := false
	for {
		select {
		case err := <-exited:
			return ran, err
		case <-tick.C:
			if flock.ReadHolder(machine.LockPath(p.dir)) == cmd.Process.Pid {
				ran = true
				tick.Stop()
				s.recordRunning(ctx, p)
			}
		}
	}
}

// recordStarted records how to reach the process.
func (s *Store) recordStarted(p *process, pid int, commands io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.pid, p.commands = pid, commands
}

// recordRunning records that the process holds its machine's lock.
func (s *Store) recordRunning(ctx context.Context, p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.phase != phaseStarting {
		return
	}
	p.phase = phaseRunning
	s.updateAddress(ctx, p.InfraID)
	s.notifyRunStateChange(p.InfraID)
	s.broadcastChange()
	s.enqueueCluster(p.InfraID)
}

// checkStartable returns an error with the reason if the machine cannot be started.
func checkStartable(p *process) error {
	disk := machine.DiskPath(p.dir)
	if _, err := os.Stat(disk); err != nil {
		return fmt.Errorf("its disk is missing: %w: delete the cluster, or restore the folder", err)
	}
	return nil
}

// classifyExit distinguishes a machine that could not start from one that stopped because it
// crashed or was killed. err is the error of exec.Cmd.Wait.
func (p *process) classifyExit(ran bool, err error, said string) exitResult {
	var exit *exec.ExitError
	gaveUp := errors.As(err, &exit) && exit.Exited() && exit.ExitCode() != machine.CrashExitCode
	if ran && !(gaveUp && time.Since(p.startedAt) < startupPeriod) {
		return exitResult{state: cloud.Stopped}
	}
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	if said == "" {
		said = "it printed nothing"
	}
	return newFailedResult(fmt.Errorf("its process ended at once (%s): %s", how, said))
}

func newFailedResult(err error) exitResult {
	return exitResult{state: cloud.Failed, reason: err.Error()}
}
