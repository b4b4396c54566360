package recipes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/pflag"
)

// The stand-in for docker 29: the containers, volumes and networks that the tools create, and the
// commands of the CLI that recipes use. Source: docs.docker.com/reference/cli/docker.

func init() { registerTool("docker", runDocker) }

// container is a container of the stand-in. State is one of those that docker ps documents: created,
// running, paused, restarting, exited, removing, dead.
type container struct {
	Names, State string
	Labels       map[string]string
}

// Label is called by the templates of --format.
func (c container) Label(key string) string { return c.Labels[key] }

func (t toolCall) putContainer(c container) {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	t.write(string(raw), "docker", "containers", c.Names)
}

func (t toolCall) container(name string) (c container, ok bool) {
	raw, ok := t.read("docker", "containers", name)
	if ok && json.Unmarshal([]byte(raw), &c) != nil {
		panic("container " + name + ": " + raw)
	}
	return c, ok
}

// containers returns the containers with a label, sorted by name. An empty value stands for any value.
func (t toolCall) containers(key, value string) []container {
	var out []container
	for _, name := range t.list("docker", "containers") {
		c, ok := t.container(name)
		if has, labeled := c.Labels[key]; ok && labeled && (value == "" || has == value) {
			out = append(out, c)
		}
	}
	return out
}

// maxContainers is how many containers fit on the stand-in's disk.
const maxContainers = 30

// checkRoom returns an error if the disk is full, or if a registry does not have the image.
func (t toolCall) checkRoom(image string) error {
	if strings.HasPrefix(image, "missing") {
		return fmt.Errorf("Error response from daemon: manifest for %s not found: manifest unknown: manifest unknown", image)
	}
	if len(t.list("docker", "containers")) >= maxContainers {
		return fmt.Errorf("Error response from daemon: mkdir /var/lib/docker/overlay2/c0ffee: no space left on device")
	}
	return nil
}

// runContainer creates a container and starts it, as docker run --detach.
func (t toolCall) runContainer(image, name string, labels map[string]string) error {
	if err := t.checkRoom(image); err != nil {
		return err
	}
	if _, exists := t.container(name); exists {
		return fmt.Errorf("docker: Error response from daemon: Conflict. The container name %q is already in use", "/"+name)
	}
	t.putContainer(container{Names: name, State: "created", Labels: labels})
	t.step()
	t.putContainer(container{Names: name, State: "running", Labels: labels})
	t.step()
	return nil
}

func (t toolCall) setContainerState(name, state string) {
	if c, ok := t.container(name); ok && c.State != state {
		c.State = state
		t.putContainer(c)
		t.step()
	}
}

func (t toolCall) removeContainer(name string) {
	t.remove("docker", "containers", name)
	t.step()
}

func runDocker(t toolCall) int {
	if len(t.Args) == 0 {
		return t.fail(1, "Usage:  docker [OPTIONS] COMMAND")
	}
	command, words := t.Args[0], 1
	if slices.Contains([]string{"network", "volume"}, command) && len(t.Args) > 1 {
		command, words = command+" "+t.Args[1], 2
	}
	run, ok := map[string]func(toolCall, *pflag.FlagSet, []string) int{
		"ps": dockerPs, "stop": dockerStop, "start": dockerStart, "rm": dockerRm, "logs": dockerLogs,
		"network ls": dockerList("networks"), "network rm": dockerRemove("networks"), "network inspect": dockerNetworkInspect,
		"volume ls": dockerList("volumes"), "volume rm": dockerRemove("volumes"),
	}[command]
	if !ok {
		return t.fail(1, "docker: unknown command: docker %s", command)
	}
	return run(t, pflag.NewFlagSet(command, pflag.ContinueOnError), t.Args[words:])
}

// parseDocker parses flags as docker does: usage errors exit with 125.
func (t toolCall) parseDocker(flags *pflag.FlagSet, args []string) bool {
	flags.SetOutput(t.Stderr)
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		t.fail(125, "%v\n\nUsage:  docker %s [OPTIONS]", err, flags.Name())
		return false
	}
	return true
}

func dockerPs(t toolCall, flags *pflag.FlagSet, args []string) int {
	all := flags.BoolP("all", "a", false, "")
	quiet := flags.BoolP("quiet", "q", false, "")
	_ = flags.Bool("no-trunc", false, "")
	filters := flags.StringArrayP("filter", "f", nil, "")
	format := flags.String("format", "{{.Names}}", "")
	if !t.parseDocker(flags, args) {
		return 125
	}
	if flags.NArg() > 0 {
		return t.fail(1, `docker: "docker ps" accepts no arguments`)
	}
	row, err := template.New("").Parse(*format + "\n")
	if err != nil {
		return t.fail(1, "failed to parse template: %v", err)
	}
	for _, name := range t.list("docker", "containers") {
		c, ok := t.container(name)
		if !ok || (!*all && c.State != "running" && c.State != "paused" && c.State != "restarting") {
			continue
		}
		matches, err := matchesFilters(c, *filters)
		if err != nil {
			return t.fail(1, "Error response from daemon: %v", err)
		}
		switch {
		case !matches:
		case *quiet:
			fmt.Fprintln(t.Stdout, c.Names)
		default:
			if err := row.Execute(t.Stdout, c); err != nil {
				return t.fail(1, "failed to execute template: %v", err)
			}
		}
	}
	return 0
}

// matchesFilters applies the filters label=KEY[=VALUE] and name=REGEXP.
func matchesFilters(c container, filters []string) (bool, error) {
	for _, f := range filters {
		kind, text, _ := strings.Cut(f, "=")
		switch kind {
		case "label":
			key, value, hasValue := strings.Cut(text, "=")
			if has, labeled := c.Labels[key]; !labeled || (hasValue && has != value) {
				return false, nil
			}
		case "name":
			pattern, err := regexp.Compile(text)
			if err != nil || !pattern.MatchString(c.Names) {
				return false, err
			}
		default:
			return false, fmt.Errorf("invalid filter %q", f)
		}
	}
	return true, nil
}

// dockerResource is a network or a volume. The tools create and remove them.
type dockerResource struct {
	Subnet string
	Labels map[string]string
}

func (t toolCall) putDocker(kind, name string, r dockerResource) {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	t.write(string(raw), "docker", kind, name)
	t.step()
}

func (t toolCall) getDocker(kind, name string) (r dockerResource, ok bool) {
	raw, ok := t.read("docker", kind, name)
	if ok && json.Unmarshal([]byte(raw), &r) != nil {
		panic(kind + " " + name + ": " + raw)
	}
	return r, ok
}

// dockerList lists networks or volumes.
func dockerList(kind string) func(toolCall, *pflag.FlagSet, []string) int {
	return func(t toolCall, flags *pflag.FlagSet, args []string) int {
		quiet := flags.BoolP("quiet", "q", false, "")
		filters := flags.StringArrayP("filter", "f", nil, "")
		if !t.parseDocker(flags, args) {
			return 125
		}
		if flags.NArg() > 0 || !*quiet {
			return t.fail(1, "docker: this stand-in knows %s --quiet alone", flags.Name())
		}
		for _, name := range t.list("docker", kind) {
			r, ok := t.getDocker(kind, name)
			matches, err := matchesFilters(container{Names: name, Labels: r.Labels}, *filters)
			if err != nil {
				return t.fail(1, "Error response from daemon: %v", err)
			}
			if ok && matches {
				fmt.Fprintln(t.Stdout, name)
			}
		}
		return 0
	}
}

// dockerRemove removes networks or volumes. A missing one is an error.
func dockerRemove(kind string) func(toolCall, *pflag.FlagSet, []string) int {
	return func(t toolCall, flags *pflag.FlagSet, args []string) int {
		if !t.parseDocker(flags, args) {
			return 125
		}
		if flags.NArg() == 0 {
			return t.fail(1, "docker: 'docker %s' requires at least 1 argument", flags.Name())
		}
		for _, name := range flags.Args() {
			if _, ok := t.getDocker(kind, name); !ok {
				return t.fail(1, "Error response from daemon: %s: %s not found", kind, name)
			}
			t.remove("docker", kind, name)
			t.step()
		}
		return 0
	}
}

func dockerNetworkInspect(t toolCall, flags *pflag.FlagSet, args []string) int {
	format := flags.StringP("format", "f", "", "")
	if !t.parseDocker(flags, args) {
		return 125
	}
	if flags.NArg() == 0 {
		return t.fail(1, "docker: 'docker network inspect' requires at least 1 argument")
	}
	row, err := template.New("").Parse(*format + "\n")
	if err != nil {
		return t.fail(1, "template parsing error: %v", err)
	}
	for _, name := range flags.Args() {
		r, ok := t.getDocker("networks", name)
		if !ok {
			return t.fail(1, "Error response from daemon: network %s not found", name)
		}
		type ipamConfig struct{ Subnet string }
		network := struct{ IPAM struct{ Config []ipamConfig } }{}
		network.IPAM.Config = []ipamConfig{{r.Subnet}}
		if err := row.Execute(t.Stdout, network); err != nil {
			return t.fail(1, "template parsing error: %v", err)
		}
	}
	return 0
}

// changeContainers calls change for each named container. A missing one is an error at the end.
func (t toolCall) changeContainers(verb string, names []string, change func(container)) int {
	if len(names) == 0 {
		return t.fail(1, "docker: 'docker %s' requires at least 1 argument", verb)
	}
	code := 0
	for _, name := range names {
		c, ok := t.container(name)
		if !ok {
			code = t.fail(1, "Error response from daemon: No such container: %s", name)
			continue
		}
		change(c)
		fmt.Fprintln(t.Stdout, name)
	}
	return code
}

// dockerStop succeeds for containers that do not run.
func dockerStop(t toolCall, flags *pflag.FlagSet, args []string) int {
	_ = flags.IntP("timeout", "t", 10, "")
	if !t.parseDocker(flags, args) {
		return 125
	}
	return t.changeContainers("stop", flags.Args(), func(c container) {
		if slices.Contains([]string{"running", "paused", "restarting"}, c.State) {
			t.setContainerState(c.Names, "exited")
		}
	})
}

// dockerStart succeeds for containers that run.
func dockerStart(t toolCall, flags *pflag.FlagSet, args []string) int {
	if !t.parseDocker(flags, args) {
		return 125
	}
	return t.changeContainers("start", flags.Args(), func(c container) { t.setContainerState(c.Names, "running") })
}

func dockerRm(t toolCall, flags *pflag.FlagSet, args []string) int {
	force := flags.BoolP("force", "f", false, "")
	_ = flags.BoolP("volumes", "v", false, "")
	if !t.parseDocker(flags, args) {
		return 125
	}
	return t.changeContainers("rm", flags.Args(), func(c container) {
		if c.State == "running" && !*force {
			t.fail(1, "Error response from daemon: cannot remove container %q: container is running", c.Names)
			return
		}
		t.removeContainer(c.Names)
	})
}

func dockerLogs(t toolCall, flags *pflag.FlagSet, args []string) int {
	_ = flags.StringP("tail", "n", "all", "")
	_ = flags.BoolP("timestamps", "t", false, "")
	if !t.parseDocker(flags, args) {
		return 125
	}
	if flags.NArg() != 1 {
		return t.fail(1, "docker: 'docker logs' requires 1 argument")
	}
	if _, ok := t.container(flags.Arg(0)); !ok {
		return t.fail(1, "Error response from daemon: No such container: %s", flags.Arg(0))
	}
	fmt.Fprintf(t.Stdout, "log of %s\n", flags.Arg(0))
	return 0
}
