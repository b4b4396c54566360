package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

const (
	// terminationGrace is the time between SIGTERM and SIGKILL.
	terminationGrace = 5 * time.Second
	// exitPollInterval is the interval for checking whether a process has ended.
	exitPollInterval = 100 * time.Millisecond
	// retryInterval is the delay before a failed read from or write to the API is retried.
	retryInterval = time.Second
)

// parentPipe makes a process end when its standard input ends. The kernel closes the pipe even if
// the machine is killed.
const parentPipe = "HOTSPARE_PARENT_PIPE=1"

// processManager manages the processes of a node's pods. Except for waitForProcesses, its methods
// are called by one goroutine.
type processManager struct {
	dir, self        string
	client           kubernetes.Interface
	api              *rest.Config // how to reach the cluster
	all              map[string]*podProcess
	runningProcesses sync.WaitGroup
}

// podProcess manages the process of one pod, from its first start to the end of the pod.
type podProcess struct {
	*processManager
	pod          *corev1.Pod
	dir          string
	stop         context.CancelFunc
	done         chan struct{}
	resendStatus chan struct{} // requests that the status is written again
	lastStatus   func(*corev1.Pod) *corev1.PodStatus
}

func newProcessManager(o Options, client kubernetes.Interface) (*processManager, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if err := os.RemoveAll(o.Pods); err != nil { // left by processes that ended with the previous run of the machine
		return nil, fmt.Errorf("clearing the folder of pods: %w", err)
	}
	return &processManager{dir: o.Pods, self: self, client: client, api: o.Bootstrap, all: map[string]*podProcess{}}, nil
}

// reconcilePod returns the next step for a pod that runs as a process, and starts or stops the
// process. The podProcess itself writes the status.
func (p *processManager) reconcilePod(ctx context.Context, pod *corev1.Pod) step {
	key := cache.MetaObjectToName(pod).String()
	old := p.all[key]
	if old != nil && (old.pod.UID != pod.UID || pod.DeletionTimestamp != nil) {
		if !old.stopAndCheckExit() {
			return step{wait: exitPollInterval}
		}
		delete(p.all, key)
		old = nil
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return step{remove: true}
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
	case old == nil:
		p.all[key] = p.startProgram(ctx, pod)
	case !isPodReady(pod):
		old.requestStatusUpdate() // not ready, or marked so by kube-controller-manager while the node was unreachable
	}
	return step{}
}

// stopDeletedPod stops the process of a pod that was deleted without a grace period.
func (p *processManager) stopDeletedPod(key string) {
	if old := p.all[key]; old != nil {
		old.stop()
		delete(p.all, key)
	}
}

// waitForProcesses returns when all processes have ended. The caller must have ended their context.
func (p *processManager) waitForProcesses() { p.runningProcesses.Wait() }

// stopAndCheckExit stops the process and reports whether it has ended.
func (p *podProcess) stopAndCheckExit() bool {
	p.stop()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *podProcess) requestStatusUpdate() {
	select {
	case p.resendStatus <- struct{}{}:
	default:
	}
}

func (p *processManager) startProgram(ctx context.Context, pod *corev1.Pod) *podProcess {
	ctx, stop := context.WithCancel(ctx)
	g := &podProcess{
		processManager: p, pod: pod, dir: filepath.Join(p.dir, string(pod.UID)), stop: stop,
		done: make(chan struct{}), resendStatus: make(chan struct{}, 1),
	}
	p.runningProcesses.Go(func() {
		defer close(g.done)
		defer stop()
		g.runWithRestarts(ctx)
		if err := os.RemoveAll(g.dir); err != nil {
			klog.FromContext(ctx).Error(err, "did not delete the folder of a pod", "pod", klog.KObj(pod))
		}
	})
	return g
}

// runWithRestarts starts the process, and restarts it, until ctx ends or the pod has completed.
func (p *podProcess) runWithRestarts(ctx context.Context) {
	l := processRun{restarts: restartCount(p.pod)}
	var pause time.Duration
	for ctx.Err() == nil {
		cmd, err := p.prepareCommand(ctx)
		if err != nil {
			p.writePodStatus(ctx, func(pod *corev1.Pod) *corev1.PodStatus {
				return waitingStatus(pod, l, "CreateContainerConfigError", err.Error(), metav1.Now())
			})
			p.waitForBackoff(ctx, retryInterval)
			continue
		}
		from := metav1.Now()
		l = p.runProcess(ctx, cmd, l, from)
		if ctx.Err() != nil {
			return
		}
		if !shouldRestart(p.pod.Spec.RestartPolicy, l.lastTermination.ExitCode) {
			p.writePodStatus(ctx, func(pod *corev1.Pod) *corev1.PodStatus { return exitedStatus(pod, l, metav1.Now()) })
			return
		}
		pause = nextRestartBackoff(pause, time.Since(from.Time))
		l.restarts++
		back := fmt.Sprintf("back-off %s before it restarts", pause)
		p.writePodStatus(ctx, func(pod *corev1.Pod) *corev1.PodStatus {
			return waitingStatus(pod, l, "CrashLoopBackOff", back, metav1.Now())
		})
		p.waitForBackoff(ctx, pause)
	}
}

// runProcess runs the process until it ends and returns how it ended.
func (p *podProcess) runProcess(ctx context.Context, cmd *exec.Cmd, l processRun, from metav1.Time) processRun {
	exited := make(chan error, 1)
	if _, err := cmd.StdinPipe(); err != nil { // cmd keeps the pipe open until the process ends
		exited <- err
	} else if err := cmd.Start(); err != nil {
		exited <- err
	} else {
		l.pid = cmd.Process.Pid
		go func() { exited <- cmd.Wait() }()
		p.writePodStatus(ctx, func(pod *corev1.Pod) *corev1.PodStatus { return processStatus(pod, l, from) })
	}
	for {
		select {
		case err := <-exited:
			l.lastTermination = processExitState(cmd, from, metav1.Now())
			if ctx.Err() == nil {
				klog.FromContext(ctx).Info("process ended", "pod", klog.KObj(p.pod), "pid", l.pid, "how", fmt.Sprint(err))
			}
			return l
		case <-p.resendStatus:
			p.writePodStatus(ctx, p.lastStatus)
		case <-time.After(renewToken):
			if err := p.writePodToken(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "will retry", "pod", klog.KObj(p.pod))
			}
		}
	}
}

// prepareCommand writes the pod's files and returns the command that runs its process.
func (p *podProcess) prepareCommand(ctx context.Context) (*exec.Cmd, error) {
	args, env, err := parsePodCommand(p.pod, p.dir)
	if err != nil {
		return nil, err
	}
	if err := p.writeVolumes(ctx); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.self, args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir}, env...)
	// These come last and therefore override the values of the pod.
	cmd.Env = append(cmd.Env, clientcmd.RecommendedConfigPathEnvVar+"="+p.kubeconfigPath(), PodDir+"="+p.dir, parentPipe)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // the machine's log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = terminationGrace
	return cmd, nil
}

// writePodStatus writes a status and retries until the API accepts it, the pod is deleted, or ctx
// ends.
func (p *podProcess) writePodStatus(ctx context.Context, status func(*corev1.Pod) *corev1.PodStatus) {
	p.lastStatus = status
	pods := p.client.CoreV1().Pods(p.pod.Namespace)
	_ = informerloop.RetryUntilSuccess(ctx, retryInterval, func(ctx context.Context) error { // it fails only when ctx ends
		pod, err := pods.Get(ctx, p.pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (pod.UID != p.pod.UID || pod.DeletionTimestamp != nil) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading pod %s: %w", klog.KObj(p.pod), err)
		}
		pod.Status = *status(pod)
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("updating the status of pod %s: %w", klog.KObj(p.pod), err)
		}
		return nil
	})
}

func (p *podProcess) waitForBackoff(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case <-p.resendStatus: // the pod is not ready, and its status already says so
		}
	}
}
