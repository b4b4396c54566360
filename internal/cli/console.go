package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/console/localauth"
)

const consoleLong = `Print a link that opens the console of the hotspare up on this machine, and lets you
in as the one who runs it. The link is good for a minute, and once: make another
whenever you need one. Whoever has it first is in, so give it to nobody.

The console also takes tokens of the hub, and shows and does what their owner may.`

func (a commands) consoleCommand() *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:               "console",
		Short:             "Open the console, hotspare in a browser",
		Long:              consoleLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.openConsole(cmd.Context(), open) },
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the link in a browser, too")
	return cmd
}

// consoleTimeout is how long the console may take to say that it is there.
const consoleTimeout = 5 * time.Second

func (a commands) openConsole(ctx context.Context, open bool) error {
	dir := base.ResolveDataDir(a.Flags.DataDir)
	plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir))
	if errors.Is(err, os.ErrPermission) {
		return base.WithRemedy(err, "only who has started hotspare may open the console as its admin; others sign in there with a token")
	}
	if errors.Is(err, os.ErrNotExist) {
		return base.WithRemedy(fmt.Errorf("no console is served from %s", dir), "start hotspare with: hotspare up")
	}
	if err != nil {
		return err
	}
	if plate.Key == nil || !isConsoleReachable(ctx, plate.URL) {
		return base.WithRemedy(fmt.Errorf("no hotspare runs on %s that serves a console", dir), "start it with: hotspare up")
	}
	link := plate.LoginLink(a.Clock.Now())
	fmt.Fprintln(a.Stdout, link)
	if a.IsTerminal(a.Stderr) {
		fmt.Fprintln(a.Stderr, "Open it in a browser on this machine within a minute; it works once.")
	}
	if open {
		return openInBrowser(ctx, a.Stderr, dir, link)
	}
	return nil
}

// isConsoleReachable reports whether there is a console at a URL.
func isConsoleReachable(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/healthz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// openInBrowser opens a link in whatever browser there is. Others on this computer can see with
// what a program was started, so that is a page that only its owner may read.
func openInBrowser(ctx context.Context, out io.Writer, dir, link string) error {
	page := localauth.LinkPagePath(dir)
	text := fmt.Sprintf("<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=%[1]s\"><a href=\"%[1]s\">hotspare</a>\n", link)
	if err := os.Remove(page); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("making a page that leads to the console: %w", err)
	}
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return fmt.Errorf("making a page that leads to the console: %w", err)
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	cmd := exec.CommandContext(ctx, opener, page)
	cmd.Stderr = out
	if err := cmd.Run(); err != nil {
		return base.WithRemedy(fmt.Errorf("opening a browser with %s: %w", opener, err), "open the link above yourself")
	}
	return nil
}

// readConsoleURL is where the hub has its console; "" unless it is one of hotspare up that
// serves one.
func (a commands) readConsoleURL() string {
	dir := base.ResolveDataDir(a.Flags.DataDir)
	if path, err := a.KubeconfigPath(); err != nil || path != filepath.Join(dir, "kubeconfig") {
		return ""
	}
	plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir))
	if err != nil || plate.Key == nil {
		return ""
	}
	return plate.URL
}
