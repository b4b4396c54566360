//go:build browser

package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// program is Debian's Chromium.
const program = "chromium"

// chromium is a headless browser. It can reach no other host than this one.
type chromium struct {
	ctx     context.Context
	cancel  func()
	profile string
	process *exec.Cmd
}

func startChromium(ctx context.Context, profile string) (*chromium, error) {
	c := &chromium{profile: profile}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program),
		chromedp.UserDataDir(profile),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.NoSandbox,              // containers run it as root, and it opens only our own pages
		chromedp.Env("HOME=" + profile), // it also writes to its home directory
		chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-dev-shm-usage", true), // containers have little shared memory
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.WSURLReadTimeout(timeout),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			// If the tests are killed, Chromium is, too. end kills its process group.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			c.process = cmd
		}),
	}
	allocator, cancel := chromedp.NewExecAllocator(ctx, options...)
	var cancelBrowser func()
	c.ctx, cancelBrowser = chromedp.NewContext(allocator, chromedp.WithErrorf(logDriverError))
	c.cancel = func() { cancelBrowser(); cancel() }
	if err := chromedp.Run(c.ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", program, err), c.stop())
	}
	return c, nil
}

// logDriverError logs the driver's errors, except those about a Chromium newer than the driver.
func logDriverError(text string, args ...any) {
	if said := fmt.Sprintf(text, args...); !strings.Contains(said, "unhandled node event") && !strings.Contains(said, "could not unmarshal event") {
		fmt.Fprintln(os.Stderr, said)
	}
}

// tab opens a tab with its own cookies. The caller must close it.
func (c *chromium) tab() (tab context.Context, closeTab func() error, err error) {
	all := cdp.WithExecutor(c.ctx, chromedp.FromContext(c.ctx).Browser)
	person, err := target.CreateBrowserContext().Do(all)
	if err != nil {
		return nil, nil, err
	}
	leave := target.DisposeBrowserContext(person)
	// Without a new window, Chromium looks for a window of this browser context and finds none.
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(person).WithNewWindow(true).Do(all)
	if err != nil {
		return nil, nil, errors.Join(err, leave.Do(all))
	}
	tab, cancel := chromedp.NewContext(c.ctx, chromedp.WithTargetID(id))
	closeTab = func() error {
		cancel()
		return leave.Do(all)
	}
	// The first call attaches to the tab, and its context is the lifetime of the tab.
	if err := chromedp.Run(tab); err != nil {
		return nil, nil, errors.Join(err, closeTab())
	}
	return tab, closeTab, nil
}

// stop stops Chromium with all its processes.
func (c *chromium) stop() error {
	c.cancel()
	if c.process == nil || c.process.Process == nil {
		return nil
	}
	_ = syscall.Kill(-c.process.Process.Pid, syscall.SIGKILL) // they may have exited
	return waitForExit("Chromium", c.profile)
}

// waitForExit waits until no process has a folder in its command line. It returns an error if some still
// have after a while.
func waitForExit(what, dir string) error {
	limit := time.After(timeout)
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		left, err := findProcesses(dir)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-look.C:
		case <-limit:
			return fmt.Errorf("processes of %s are left:\n%s", what, strings.Join(left, "\n"))
		}
	}
}

// findProcesses returns the command lines that contain dir.
func findProcesses(dir string) (out []string, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		raw, err := os.ReadFile(name)
		if err != nil || name == fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			continue // the process has exited, or is this one
		}
		if line := strings.ReplaceAll(string(raw), "\x00", " "); strings.Contains(line, dir+" ") || strings.Contains(line, dir+"/") {
			out = append(out, filepath.Base(filepath.Dir(name))+" "+line)
		}
	}
	return out, nil
}
