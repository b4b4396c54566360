package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/console/localauth"
)

const consoleLong = `Print a link that opens the console of the hotspare up on this machine and signs you in
as its administrator. The link works once, within one minute; run the command again for
a new link. Do not share it: the first person to open the link is signed in.

The console also accepts tokens of the hub. It shows and does only what the owner of
the token is allowed to.`

func (a commands) consoleCommand() *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:               "console",
		Short:             "Print a link to the web console",
		Long:              consoleLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.openConsole(cmd.Context(), open) },
	}
	cmd.Flags().BoolVar(&open, "open", false, "also open the link in a browser")
	return cmd
}

// consoleTimeout is the maximum time for the console to respond.
const consoleTimeout = 5 * time.Second

func (a commands) openConsole(ctx context.Context, open bool) error {
	dir := base.ResolveDataDir(a.Flags.DataDir)
	plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir))
	if errors.Is(err, os.ErrPermission) {
		return base.WithRemedy(err, "only the user who started hotspare can open the console as administrator; other users sign in with a token")
	}
	if errors.Is(err, os.ErrNotExist) {
		return base.WithRemedy(fmt.Errorf("no console is served from %s", dir), "start hotspare with: hotspare up")
	}
	if err != nil {
		return err
	}
	if plate.Key == nil || !isConsoleReachable(ctx, plate.URL) {
		return base.WithRemedy(fmt.Errorf("no hotspare with a console is running on %s", dir), "start it with: hotspare up")
	}
	link := plate.LoginLink(a.Clock.Now())
	fmt.Fprintln(a.Stdout, link)
	if a.IsTerminal(a.Stderr) {
		fmt.Fprintln(a.Stderr, "Open the link in a browser on this machine within a minute. It works once.")
	}
	if open {
		return openInBrowser(ctx, a.Stderr, dir, link)
	}
	return nil
}

// isConsoleReachable reports whether a console responds at a URL.
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

// openInBrowser opens a link in the default browser. Other users of this computer can see the
// arguments of a process, so the link is in a page that only its owner can read.
func openInBrowser(ctx context.Context, out io.Writer, dir, link string) error {
	page := localauth.LinkPagePath(dir)
	text := fmt.Sprintf("<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=%[1]s\"><a href=\"%[1]s\">hotspare</a>\n", link)
	if err := os.Remove(page); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("writing a page with the link to the console: %w", err)
	}
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing a page with the link to the console: %w", err)
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	cmd := exec.CommandContext(ctx, opener, page)
	cmd.Stderr = out
	if err := cmd.Run(); err != nil {
		return base.WithRemedy(fmt.Errorf("opening a browser with %s: %w", opener, err), "open the link above in a browser")
	}
	return nil
}

// readConsoleURL returns the URL of the hub's console; "" unless the hub is a hotspare up that
// serves a console.
func (a commands) readConsoleURL() string {
	dir := a.HubDataDir()
	if dir == "" {
		return ""
	}
	plate, err := localauth.ReadEndpoint(localauth.EndpointPath(dir))
	if err != nil || plate.Key == nil {
		return ""
	}
	return plate.URL
}
