//go:build containers

package containers

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testLoadBalancer reaches a Service at its loopback address, by a port that needs root, until it is
// deleted.
func testLoadBalancer(t *testing.T, c *cluster) {
	c.kubectl("expose", "deployment", "web", "--type=LoadBalancer", "--name=balanced", "--port=80", "--target-port=8080")
	address := c.loadBalancerAddress("balanced")
	answered := map[string]bool{}
	for range 30 {
		answered[getFromHost(t, "http://"+address+"/hostname")] = true
	}
	if len(answered) != 2 {
		t.Errorf("these replicas answered: %v", answered)
	}
	c.kubectl("wait", "service/balanced", "--for=condition=LoadBalancerReady", "--timeout=3m")
	if out := c.kubectl("describe", "service", "balanced"); !strings.Contains(out, "AddressAssigned") {
		t.Errorf("no event of the address:\n%s", out)
	}
	testUDPLoadBalancer(t, c)
	c.kubectl("delete", "service", "balanced")
	waitUntilRefused(t, address+":80")
}

// testUDPLoadBalancer reaches a Service by UDP. It has no node port.
func testUDPLoadBalancer(t *testing.T, c *cluster) {
	t.Helper()
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: echo, labels: {app: echo}}
spec:
  containers: [{name: main, image: "hotspare.test/testpod:1", command: [testpod, echo, ":5353"]}]
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  type: LoadBalancer
  allocateLoadBalancerNodePorts: false
  selector: {app: echo}
  ports: [{port: 53, protocol: UDP, targetPort: 5353}]
`)
	c.kubectl("wait", "pod/echo", "--for=condition=Ready", "--timeout=3m")
	conn, err := net.Dial("udp4", c.loadBalancerAddress("echo")+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packet := make([]byte, 100)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); { // packets may be lost
		if _, err = conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		var size int
		if size, err = conn.Read(packet); err == nil {
			if answer := string(packet[:size]); answer != "echo: hello" {
				t.Errorf("the answer is %q", answer)
			}
			return
		}
	}
	t.Errorf("no answer: %v", err)
}

// loadBalancerAddress waits for the address of a Service on this computer's loopback network.
func (c *cluster) loadBalancerAddress(service string) string {
	c.t.Helper()
	arguments := []string{"get", "service", service, "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"}
	c.eventually(time.Minute, "127.", arguments...)
	return c.kubectl(arguments...)
}

// getFromHost returns the answer to a request of this computer. It repeats a request that fails.
func getFromHost(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var response *http.Response
		if response, err = client.Get(url); err != nil {
			continue
		}
		var body []byte
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil {
			return string(body)
		}
	}
	t.Fatalf("no answer from %s: %v", url, err)
	return ""
}

// waitUntilRefused waits until nothing listens at an address of this computer.
func waitUntilRefused(t *testing.T, address string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp4", address, time.Second); errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	t.Errorf("%s is still listened on: %v", address, err)
}
