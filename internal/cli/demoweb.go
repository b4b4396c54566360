package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const (
	demoImage   = "hotspare.demo/web-server:1"
	demoPort    = "8080"
	demoTimeout = "2m"
)

// runWebServer runs a web server in the first cluster and reads a page from it. If nodes of the cluster
// only report that pods run, it says why.
func (r *demoRunner) runWebServer(ctx context.Context) error {
	obstacle, err := r.findContainersObstacle(ctx)
	if err != nil {
		return err
	}
	if obstacle != "" {
		r.printLine("\n" + indent + "Skipped: " + obstacle)
		return nil
	}
	r.imageLoaded = true
	if err := r.runWords(ctx, []string{"image", "load", r.self, "--name", demoImage}); err != nil {
		return err
	}
	create := strings.Fields("kubectl create deployment web --image " + demoImage + " --")
	create = append(create, "/"+filepath.Base(r.self), "demo", "web-server", "--address", ":"+demoPort)
	if err := r.runWords(ctx, create, r.firstKubeconfig()); err != nil {
		return err
	}
	if err := r.runCommand(ctx, "kubectl rollout status deployment web --timeout "+demoTimeout, r.firstKubeconfig()); err != nil {
		return err
	}
	return r.fetchForwardedPage(ctx)
}

// findContainersObstacle returns why the containers of pods do not run in the first cluster; "" if they
// do.
func (r *demoRunner) findContainersObstacle(ctx context.Context) (string, error) {
	child := exec.CommandContext(ctx, r.self, "kubectl", "get", "nodes", "-o", "json")
	child.Env = r.childEnvironment(r.firstKubeconfig())
	raw, err := child.Output()
	if err != nil {
		return "", fmt.Errorf("listing the nodes of the claimed cluster: %w", err)
	}
	var nodes corev1.NodeList
	if err := json.Unmarshal(raw, &nodes); err != nil {
		return "", fmt.Errorf("reading the nodes of the claimed cluster: %w", err)
	}
	return simulationCause(nodes.Items), nil
}

// simulationCause returns the message of the nodes that take pods but only report that they run; "" if
// there is none.
func simulationCause(nodes []corev1.Node) string {
	for _, n := range nodes {
		if len(n.Spec.Taints) > 0 {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == machine.SimulatedPods && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

// fetchForwardedPage forwards a local port to the web server, reads its page and prints it. The server may
// still be starting: its Deployment has no probe.
func (r *demoRunner) fetchForwardedPage(ctx context.Context) error {
	fmt.Fprintf(r.Stdout, "\n%s$ %s &\n", indent, formatCommandLine(r.Name, forwardArguments, []string{r.firstKubeconfig()}))
	ctx, cancel := context.WithTimeout(ctx, demoPageTimeout)
	defer cancel()
	ticker := r.Clock.NewTicker(demoPageInterval)
	defer ticker.Stop()
	for {
		address, page, err := r.forwardAndFetch(ctx)
		if err == nil {
			fmt.Fprintf(r.Stdout, "%s$ curl http://%s/\n%s  %s\n", indent, address, indent, strings.TrimSpace(page))
			return nil
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return err
		}
	}
}

// Limits of the wait for the web server.
const (
	demoPageTimeout  = time.Minute
	demoPageInterval = time.Second
)

var forwardArguments = []string{"kubectl", "port-forward", "deployment/web", ":" + demoPort}

// forwardAndFetch forwards a local port to the web server until it has read the page. It returns the
// local address.
func (r *demoRunner) forwardAndFetch(ctx context.Context) (address, page string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	child := exec.CommandContext(ctx, r.self, forwardArguments...)
	child.Env = r.childEnvironment(r.firstKubeconfig())
	child.WaitDelay = time.Second
	output, err := child.StdoutPipe()
	if err != nil {
		return "", "", fmt.Errorf("forwarding a port: %w", err)
	}
	var wrong strings.Builder
	child.Stderr = &wrong
	if err := child.Start(); err != nil {
		return "", "", fmt.Errorf("forwarding a port: %w", err)
	}
	addresses := make(chan string, 1)
	go func() {
		defer close(addresses)
		scanForPrefix(output, forwardingPrefix, func(line string) { addresses <- forwardedAddress(line) })
	}()
	address, page, err = fetchFrom(ctx, addresses)
	cancel()
	_ = child.Wait() // it was killed
	if err != nil {
		return "", "", fmt.Errorf("%w: %s", err, strings.TrimSpace(wrong.String()))
	}
	return address, page, nil
}

// fetchFrom reads the page at the address that it receives.
func fetchFrom(ctx context.Context, addresses <-chan string) (address, page string, err error) {
	select {
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	case to, ok := <-addresses:
		if !ok {
			return "", "", errors.New("no port was forwarded to the web server")
		}
		page, err := fetchPage(ctx, "http://"+to+"/")
		return to, page, err
	}
}

const forwardingPrefix = "Forwarding from "

// forwardedAddress returns the local address in a line such as "Forwarding from 127.0.0.1:41231 -> 8080".
func forwardedAddress(line string) string {
	address, _, _ := strings.Cut(strings.TrimPrefix(line, forwardingPrefix), " ")
	return address
}

// maxPage is how much of a page is read.
const maxPage = 4 << 10

func fetchPage(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, demoServerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("reading the page of the web server: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading the page of the web server: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return "", fmt.Errorf("reading the page of the web server: %w", err)
	}
	return string(page), nil
}

// firstKubeconfig returns the environment variable with the kubeconfig of the first claim.
func (r *demoRunner) firstKubeconfig() string {
	return "KUBECONFIG=" + filepath.Join(r.privateDir, "first.kubeconfig")
}

// deleteDemoImage deletes the image of the web server, if the demo has loaded it.
func (r *demoRunner) deleteDemoImage(ctx context.Context) error {
	if !r.imageLoaded {
		return nil
	}
	child := exec.CommandContext(ctx, r.self, "image", "delete", demoImage)
	child.Env = r.childEnvironment()
	if output, err := child.CombinedOutput(); err != nil {
		return base.WithRemedy(fmt.Errorf("deleting image %s: %w: %s", demoImage, err, strings.TrimSpace(string(output))),
			"delete it with: "+r.FormatCommand("image delete "+demoImage))
	}
	return nil
}
