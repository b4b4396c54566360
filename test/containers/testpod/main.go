// Testpod is the program in the containers of the tests: a web server, and clients that resolve names
// as Go does, because the C library of a static busybox cannot.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail("which command: serve, answer, echo, get, lookup, registry or wait")
	}
	switch command, arguments := os.Args[1], os.Args[2:]; command {
	case "serve":
		serve(arguments[0])
	case "answer":
		answer(arguments[0], arguments[1])
	case "echo":
		echo(arguments[0])
	case "get":
		get(arguments[0])
	case "lookup":
		addresses, err := net.DefaultResolver.LookupHost(context.Background(), arguments[0])
		if err != nil {
			fail(err)
		}
		fmt.Println(strings.Join(addresses, " "))
	case "registry":
		serveRegistry(arguments[0])
	case "wait": // wait for SIGTERM; or with the argument deaf, forever
		if len(arguments) > 0 && arguments[0] == "deaf" {
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(time.Hour)
		}
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
	default:
		fail("unknown command " + command)
	}
}

// serve serves files below / at the address, and the host name at /hostname.
func serve(address string) {
	http.HandleFunc("/hostname", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(w, name)
	})
	http.Handle("/", http.FileServer(http.Dir("/")))
	fmt.Println("serving at", address)
	fail(http.ListenAndServe(address, nil)) //nolint:gosec // a test
}

// echo answers each UDP packet to the address with the host name and the packet.
func echo(address string) {
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		fail(err)
	}
	name, _ := os.Hostname()
	for packet := make([]byte, 65536); ; {
		size, from, err := c.ReadFrom(packet)
		if err != nil {
			fail(err)
		}
		_, _ = c.WriteTo([]byte(name+": "+string(packet[:size])), from)
	}
}

// get prints the answer to a GET request. It sends the token of the pod's account to the API.
func get(url string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: transport()}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		fail(err)
	}
	if token, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token"); err == nil && strings.HasPrefix(url, "https://kubernetes.default") {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	response, err := client.Do(request)
	if err != nil {
		fail(err)
	}
	defer response.Body.Close() //nolint:errcheck // the program ends
	body, err := io.ReadAll(response.Body)
	if err != nil {
		fail(err)
	}
	fmt.Print(string(body))
	if response.StatusCode != http.StatusOK {
		fail(response.Status)
	}
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(1)
}
