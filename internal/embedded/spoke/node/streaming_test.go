package node

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

const explanation = "pod shop/web is not a container: the nodes of this local cluster only report that pods run, because runc is missing: install it"

func newStreamServer(t *testing.T) (string, *rest.Config) {
	t.Helper()
	s := httptest.NewServer(podServer{cause: "runc is missing: install it"}.newHandler())
	t.Cleanup(s.Close)
	return s.URL, &rest.Config{Host: s.URL}
}

func TestACommandInASimulatedPodIsExplained(t *testing.T) {
	server, config := newStreamServer(t)
	for _, path := range []string{"/exec/shop/web/main", "/exec/shop/web/uid-1/main"} {
		for name, query := range map[string]string{"pipes": "output=1&error=1", "terminal": "input=1&output=1&tty=1"} {
			t.Run(path+" "+name, func(t *testing.T) {
				to, err := url.Parse(server + path + "?command=ls&" + query)
				if err != nil {
					t.Fatal(err)
				}
				executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
				if err != nil {
					t.Fatal(err)
				}
				var out, problems bytes.Buffer
				options := remotecommand.StreamOptions{Stdout: &out}
				if name == "pipes" {
					options.Stderr = &problems
				} else {
					options.Stdin, options.Tty = strings.NewReader(""), true
				}
				err = executor.StreamWithContext(t.Context(), options)
				var exit utilexec.CodeExitError
				if !errors.As(err, &exit) || exit.Code != cannotExecute {
					t.Errorf("the error is %v, not exit code %d", err, cannotExecute)
				}
				if got := strings.TrimSpace(out.String() + problems.String()); got != explanation {
					t.Errorf("printed %q", got)
				}
			})
		}
	}
}

func TestAttachingToASimulatedPodIsExplained(t *testing.T) {
	server, config := newStreamServer(t)
	to, err := url.Parse(server + "/attach/shop/web/main?output=1&error=1")
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &bytes.Buffer{}, Stderr: &problems}); err != nil {
		t.Error(err)
	}
	if got := strings.TrimSpace(problems.String()); got != explanation {
		t.Errorf("printed %q", got)
	}
}

func TestForwardingAPortOfASimulatedPodIsExplained(t *testing.T) {
	server, config := newStreamServer(t)
	to, err := url.Parse(server + "/portForward/shop/web")
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, to).Dial("portforward.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	headers := http.Header{"Port": {"80"}, "Requestid": {"1"}, "Streamtype": {"error"}}
	problems, err := conn.CreateStream(headers)
	if err != nil {
		t.Fatal(err)
	}
	headers.Set("Streamtype", "data")
	if _, err := conn.CreateStream(headers); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(problems)
	if err != nil || !strings.Contains(string(got), explanation) {
		t.Errorf("printed %q: %v", got, err)
	}
}

func TestARequestWithoutStreamsIsRejected(t *testing.T) {
	server, _ := newStreamServer(t)
	for _, path := range []string{"/exec/shop/web/main?command=ls", "/attach/shop/web/main"} {
		response, err := http.Post(server+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %s", path, response.Status)
		}
		_ = response.Body.Close()
	}
}
