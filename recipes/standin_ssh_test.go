package recipes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// The stand-ins for OpenSSH, and for the programs on the hosts of the recipe kubeadm-ssh: kubeadm
// v1.36, systemctl, crictl, sudo and kubectl. Sources: man.openbsd.org/ssh,
// kubernetes.io/docs/reference/setup-tools/kubeadm, and the manuals of systemd 252 and cri-tools.
//
// A host is the folder hosts/<address> with the files of the host that the recipe uses. A command goes
// on when its ssh is killed, as on a host.

func init() {
	registerTool("ssh", runSSH)
	for name, run := range map[string]func(toolCall) int{
		"kubeadm": runKubeadm, "kubectl": runHostKubectl,
	} {
		registerRecipeTool("kubeadm-ssh", name, run)
	}
	for name, script := range hostScripts {
		registerRecipeTool("kubeadm-ssh", name, nil)
		scripts[name] = script
	}
	registerParameters("kubeadm-ssh", map[string]string{
		"hosts": "h1.example,h2.example,h3.example,h4.example", "user": "admin", "kubernetes-version": "v1.36.1",
	})
	runningParts["kubeadm-ssh"] = listContainers
	registerSecrets("kubeadm-ssh", map[string]string{
		"ssh-privatekey": standinSecret, "known_hosts": "h1.example,h2.example,h3.example,h4.example,h5.example ssh-ed25519 AAAA\n",
	})
}

// hostScripts are the stand-ins for programs on the hosts. $host is the folder of the host.
var hostScripts = map[string]string{
	"sudo": `#!/bin/sh -eu
[ "$1" = -n ] || { echo "sudo: a password is required" >&2; exit 1; }
shift
export STANDIN_ROOT=yes
exec "$@"
`,
	"systemctl": `#!/bin/sh -eu
host=$STANDIN_STATE/hosts/$STANDIN_HOST
case "$*" in
"is-active --quiet kubelet") grep -qs "^active$" "$host/kubelet" || exit 3 ;;
"start kubelet" | "stop kubelet")
	[ -e "$host/kubelet" ] || { echo "Unit kubelet.service is not configured." >&2; exit 5; }
	[ "$1" = start ] || { echo inactive >"$host/kubelet"; exit 0; }
	echo active >"$host/kubelet"
	echo c0ffee >"$host/containers" ;;
*) echo "Unknown command verb $*." >&2; exit 1 ;;
esac
`,
	"crictl": `#!/bin/sh -eu
host=$STANDIN_STATE/hosts/$STANDIN_HOST
case "$*" in
"ps --quiet") if [ -e "$host/containers" ]; then cat "$host/containers"; fi ;;
"ps --all") echo "CONTAINER  IMAGE  STATE" ;;
"stop c0ffee") rm "$host/containers" ;;
*) echo "No help topic for $*" >&2; exit 1 ;;
esac
`,
	"journalctl": `#!/bin/sh -eu
[ "$*" = "--unit kubelet --lines 200 --no-pager" ] || { echo "journalctl: unknown option: $*" >&2; exit 1; }
echo "$STANDIN_HOST kubelet[1]: started"
`,
}

// hostVariable is the environment variable with the host on which a command runs.
const hostVariable = "STANDIN_HOST"

func runSSH(t toolCall) int {
	if err := t.rejectSecrets(); err != nil {
		return t.fail(99, "%v", err)
	}
	options, rest := map[string]string{}, t.Args
	for len(rest) >= 2 && strings.HasPrefix(rest[0], "-") {
		name, value, _ := strings.Cut(rest[1], "=")
		switch rest[0] {
		case "-i", "-p":
			options[rest[0]] = rest[1]
		case "-o":
			options[name] = value
		default:
			return t.fail(255, "unknown option -- %s", rest[0])
		}
		rest = rest[2:]
	}
	if len(rest) != 2 || options["BatchMode"] != "yes" {
		return t.fail(255, "usage: ssh [-i identity_file] [-o option] [-p port] destination [command]")
	}
	user, host, _ := strings.Cut(rest[0], "@")
	if err := checkSSH(options, user, host); err != nil {
		return t.fail(255, "%v", err)
	}
	return t.runOnHost(host, rest[1])
}

func checkSSH(options map[string]string, user, host string) error {
	info, err := os.Stat(options["-i"])
	if err != nil {
		return fmt.Errorf("no such identity: %w", err)
	}
	known, err := os.ReadFile(options["UserKnownHostsFile"])
	switch {
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("permissions %s for %q are too open", info.Mode().Perm(), options["-i"])
	case options["StrictHostKeyChecking"] != "yes":
		return fmt.Errorf("the stand-in checks the keys of hosts")
	case err != nil || !strings.Contains(string(known), host):
		return fmt.Errorf("host key verification failed")
	case user != "admin" || options["-p"] != "22":
		return fmt.Errorf("%s@%s: Permission denied (publickey)", user, host)
	}
	return nil
}

// runOnHost runs a command with the folders of a host, and in a session of its own.
func (t toolCall) runOnHost(host, command string) int {
	root := t.path("hosts", host, "etc", "kubernetes")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return t.fail(255, "%v", err)
	}
	root = filepath.Join(t.State, "hosts", host)
	for _, folder := range []string{"/etc/kubernetes", "/etc/cni/net.d", "/var/lib/hotspare"} {
		command = strings.ReplaceAll(command, folder, root+folder)
	}
	cmd := exec.Command("sh", "-c", command)                                 // continues when ssh ends
	cmd.Env = append(os.Environ(), hostVariable+"="+host, stepsVariable+"=") // the command itself is not killed
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := cmd.Start()
	if err == nil {
		t.step()
		err = cmd.Wait()
	}
	if cmd.ProcessState == nil {
		return t.fail(255, "%v", err)
	}
	return cmd.ProcessState.ExitCode()
}

// listContainers returns the hosts of a cluster on which containers run.
func listContainers(t toolCall, infraID string) []string {
	var out []string
	for _, host := range t.list("hosts") {
		owner, _ := t.read("hosts", host, "var", "lib", "hotspare", "owner")
		if _, runs := t.read("hosts", host, "containers"); runs && strings.HasPrefix(owner, infraID+" ") {
			out = append(out, host)
		}
	}
	return out
}

// onHost returns the parts of a path on the host on which the command runs.
func (t toolCall) onHost(parts ...string) []string {
	return append([]string{"hosts", t.Getenv(hostVariable)}, parts...)
}

var kubeadmToken = regexp.MustCompile(`^[a-z0-9.-]+\.example:6443 --token [a-z0-9]{6}\.[a-z0-9]{16} --discovery-token-ca-cert-hash sha256:[0-9a-f]+$`)

func runKubeadm(t toolCall) int {
	if t.Getenv("STANDIN_ROOT") != "yes" {
		return t.fail(1, "error execution phase preflight: [ERROR IsPrivilegedUser]: user is not running as root")
	}
	command := strings.Join(t.Args, " ")
	_, initialized := t.read(t.onHost("etc", "kubernetes", "kubelet.conf")...)
	switch {
	case command == "reset --force":
		t.step()
		for _, file := range []string{"admin.conf", "kubelet.conf"} {
			t.remove(t.onHost("etc", "kubernetes", file)...)
			t.step()
		}
		t.remove(t.onHost("kubelet")...)
		t.remove(t.onHost("containers")...)
		return 0
	case command == "token create --ttl 15m --print-join-command":
		if _, ok := t.read(t.onHost("etc", "kubernetes", "admin.conf")...); !ok {
			return t.fail(1, "failed to load admin kubeconfig: open /etc/kubernetes/admin.conf: no such file or directory")
		}
		fmt.Fprintf(t.Stdout, "kubeadm join %s:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00ff\n", t.Getenv(hostVariable))
		return 0
	case initialized:
		return t.fail(1, "error execution phase preflight: [ERROR FileAvailable--etc-kubernetes-kubelet.conf]: already exists")
	case len(t.Args) > 1 && t.Args[0] == "init":
		return kubeadmInit(t)
	case len(t.Args) > 1 && t.Args[0] == "join" && kubeadmToken.MatchString(strings.Join(t.Args[1:], " ")):
		return kubeadmStart(t)
	}
	return t.fail(1, "unknown command %q for \"kubeadm\"", command)
}

func kubeadmInit(t toolCall) int {
	a, err := parseArguments(t.Args[1:], "--control-plane-endpoint!", "--pod-network-cidr!", "--kubernetes-version", "--skip-phases", "--skip-token-print?")
	host := t.Getenv(hostVariable)
	if err != nil || len(a.rest) > 0 || a.flags["--control-plane-endpoint"] != host+":6443" {
		return t.fail(1, "invalid argument: %v %v", err, a)
	}
	t.step()
	credential := "{client-certificate-data: c3RhbmQtaW4=, client-key-data: c3RhbmQtaW4=}"
	t.write(kubeconfigText("kubernetes", "https://"+host+":6443", credential), t.onHost("etc", "kubernetes", "admin.conf")...)
	if !a.has("--skip-token-print") {
		fmt.Fprintln(t.Stdout, standinSecret)
	}
	return kubeadmStart(t)
}

// kubeadmStart starts the kubelet, which starts containers.
func kubeadmStart(t toolCall) int {
	t.step()
	t.write("", t.onHost("etc", "kubernetes", "kubelet.conf")...)
	t.step()
	t.write("active", t.onHost("kubelet")...)
	t.write("c0ffee\n", t.onHost("containers")...)
	t.step()
	return 0
}

func runHostKubectl(t toolCall) int {
	a, err := parseArguments(t.Args, "--kubeconfig!", "--filename!")
	if err != nil || len(a.rest) != 1 || a.rest[0] != "apply" {
		return t.fail(1, "error: %v %v", err, a.rest)
	}
	if _, err := os.Stat(a.flags["--kubeconfig"]); err != nil {
		return t.fail(1, "error: stat %s: no such file or directory", a.flags["--kubeconfig"])
	}
	t.step()
	return 0
}
