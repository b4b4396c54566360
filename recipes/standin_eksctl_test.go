package recipes

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// The stand-ins for eksctl 0.2xx (2026) and for AWS CLI v2, for the commands that the recipe eksctl
// uses. Sources: docs.aws.amazon.com/eks/latest/eksctl, docs.aws.amazon.com/cli/latest/reference, and
// pkg/actions of eksctl. eksctl waits for CloudFormation, which continues when eksctl is killed.

func init() {
	registerTool("eksctl", runEksctl)
	registerTool("aws", runAws)
	registerParameters("eksctl", map[string]string{"region": "eu-central-1", "nodes": "3", "spot": "true", "nat": "Single", "kubernetes-version": "1.35"})
	servers["eksctl"] = func(_ toolCall, infraID string) string { return "https://" + infraID + ".eks.invalid" }
	registerSecrets("eksctl", map[string]string{"credentials": "[default]\naws_access_key_id=AKIA\naws_secret_access_key=" + standinSecret + "\n"})
}

// eksQuota is how many nodes the stand-in's account may have.
const eksQuota = 9

func runEksctl(t toolCall) int {
	if len(t.Args) < 2 {
		return t.fail(1, "Error: unknown command")
	}
	region := []string{"--cluster!", "--region!"}
	command, ok := map[string]struct {
		spec []string
		run  func(toolCall, arguments) int
	}{
		"create cluster":        {[]string{"--config-file!", "--write-kubeconfig"}, eksCreateCluster},
		"create addon":          {[]string{"--config-file!"}, eksCreateAddon},
		"create nodegroup":      {[]string{"--config-file!"}, eksCreateNodegroup},
		"delete cluster":        {[]string{"--name!", "--region!", "--disable-nodegroup-eviction?"}, eksDeleteCluster},
		"scale nodegroup":       {append(region, "--name!", "--nodes!"), eksScale},
		"utils describe-stacks": {append(region, "--events?"), eksDescribeStacks},
	}[t.Args[0]+" "+t.Args[1]]
	if !ok {
		return t.fail(1, "Error: unknown command %q for \"eksctl\"", t.Args)
	}
	a, err := parseArguments(t.Args[2:], command.spec...)
	if err != nil || len(a.rest) > 0 {
		return t.fail(1, "Error: %v %v", err, a.rest)
	}
	if err := awsSignIn(t); err != nil {
		return t.fail(1, "Error: checking AWS STS access: %v", err)
	}
	t.advanceOperations("stacks", func(r resource) { cloudFormationEnd(t, r) })
	return command.run(t, a)
}

// awsSignIn checks the credentials and the region.
func awsSignIn(t toolCall) error {
	if err := t.rejectSecrets(); err != nil {
		return err
	}
	raw, err := os.ReadFile(t.Getenv("AWS_SHARED_CREDENTIALS_FILE"))
	switch {
	case err != nil || !strings.Contains(string(raw), "aws_secret_access_key="+standinSecret):
		return fmt.Errorf("InvalidClientTokenId: The security token included in the request is invalid. %w", err)
	case t.Getenv("AWS_REGION") != "eu-central-1":
		return fmt.Errorf("you must specify a region")
	}
	return nil
}

// eksConfig is the part of eksctl.io/v1alpha5 ClusterConfig that the recipe uses; other fields fail.
type eksConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name    string            `json:"name"`
		Region  string            `json:"region"`
		Version string            `json:"version"`
		Tags    map[string]string `json:"tags"`
	} `json:"metadata"`
	AvailabilityZones []string `json:"availabilityZones"`
	VPC               struct {
		NAT struct{ Gateway string } `json:"nat"`
	} `json:"vpc"`
	Addons            []struct{ Name string } `json:"addons"`
	ManagedNodeGroups []struct {
		Name              string `json:"name"`
		InstanceType      string `json:"instanceType"`
		MinSize           int    `json:"minSize"`
		DesiredCapacity   int    `json:"desiredCapacity"`
		MaxSize           int    `json:"maxSize"`
		VolumeSize        int    `json:"volumeSize"`
		Spot              bool   `json:"spot"`
		PrivateNetworking bool   `json:"privateNetworking"`
	} `json:"managedNodeGroups"`
}

func readEksConfig(a arguments) (eksConfig, error) {
	var c eksConfig
	raw, err := os.ReadFile(a.flags["--config-file"])
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &c)
	}
	switch {
	case err != nil:
		return c, fmt.Errorf("couldn't load config file: %w", err)
	case c.APIVersion != "eksctl.io/v1alpha5" || c.Kind != "ClusterConfig" || c.Metadata.Name == "" || c.Metadata.Region == "":
		return c, fmt.Errorf("metadata.name and metadata.region must be set")
	case c.Metadata.Version != "" && c.Metadata.Version != "1.35":
		return c, fmt.Errorf("invalid version, supported values: 1.35")
	case len(c.ManagedNodeGroups) != 1 || c.ManagedNodeGroups[0].DesiredCapacity > c.ManagedNodeGroups[0].MaxSize:
		return c, fmt.Errorf("cannot use --nodes-max less than --nodes")
	case c.ManagedNodeGroups[0].PrivateNetworking && c.VPC.NAT.Gateway == "Disable":
		return c, fmt.Errorf("private nodes need a NAT gateway")
	}
	return c, nil
}

// createStack creates a stack and waits for it.
func (t toolCall) createStack(cluster, suffix string, fields map[string]string) error {
	name := "eksctl-" + cluster + "-" + suffix
	if _, exists := t.resource("stacks", name); exists {
		return fmt.Errorf("creating CloudFormation stack %q: AlreadyExistsException: Stack [%s] already exists", name, name)
	}
	fields["cluster"] = cluster
	r := resource{Kind: "stacks", Name: name, Fields: fields}
	r.operate("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
	if t.isShort(cluster, fields["instanceType"] == "p5.48xlarge") {
		r.Next, r.Fields["reason"] = "ROLLBACK_COMPLETE", "AsgInstanceLaunchFailures: InsufficientInstanceCapacity - We currently do not have sufficient capacity"
	}
	t.saveResource(r)
	return t.waitForStack(name)
}

func (t toolCall) waitForStack(name string) error {
	for {
		t.step()
		t.advanceOperations("stacks", func(r resource) { cloudFormationEnd(t, r) })
		r, exists := t.resource("stacks", name)
		switch {
		case !exists || r.State == "CREATE_COMPLETE":
			return nil
		case r.Remaining == 0:
			return fmt.Errorf("waiting for CloudFormation stack %q: %s: %s", name, r.State, r.Fields["reason"])
		}
		fmt.Fprintf(t.Stdout, "[ℹ]  waiting for CloudFormation stack %q\n", name)
	}
}

// cloudFormationEnd creates or deletes what a stack contains, at the end of its operation.
func cloudFormationEnd(t toolCall, r resource) {
	cluster := r.Fields["cluster"]
	isCluster := strings.HasSuffix(r.Name, "-cluster")
	switch {
	case r.Next == "" && isCluster:
		t.remove("eks", cluster)
		t.remove("tokens", cluster)
		t.remove("addons", cluster)
	case r.Next == "":
		eksSetNodes(t, cluster, 0, true)
		t.remove("nodegroups", cluster)
	case r.Next != "CREATE_COMPLETE":
	case isCluster:
		t.saveResource(resource{Kind: "eks", Name: cluster, State: "ACTIVE"})
	default:
		size := 0
		_, _ = fmt.Sscan(r.Fields["nodes"], &size)
		t.saveResource(resource{Kind: "nodegroups", Name: cluster, State: "ACTIVE"})
		eksSetNodes(t, cluster, size, true)
	}
}

// eksSetNodes sets the number of instances of a cluster to size: at once, or with operations of their own.
func eksSetNodes(t toolCall, cluster string, size int, atOnce bool) {
	var nodes []resource
	for _, i := range t.resources("ec2") {
		if i.Fields["cluster"] == cluster {
			nodes = append(nodes, i)
		}
	}
	for i := len(nodes); i < size; i++ {
		n := resource{Kind: "ec2", Name: fmt.Sprintf("i-%s-%d", cluster, i), State: "running", Fields: map[string]string{"cluster": cluster}}
		if !atOnce {
			n.operate("pending", "running")
		}
		t.saveResource(n)
	}
	for _, n := range nodes[min(size, len(nodes)):] {
		if atOnce {
			t.remove("ec2", n.Name)
			continue
		}
		n.operate("shutting-down", "")
		t.saveResource(n)
	}
}

func eksCreateCluster(t toolCall, a arguments) int {
	c, err := readEksConfig(a)
	if err != nil {
		return t.fail(1, "Error: %v", err)
	}
	if a.flags["--write-kubeconfig"] != "false" {
		return t.fail(1, "Error: the stand-in writes no kubeconfig")
	}
	err = t.createStack(c.Metadata.Name, "cluster", map[string]string{})
	if err == nil {
		t.write("", "addons", c.Metadata.Name, "vpc-cni")
		err = eksNodegroup(t, c)
	}
	if err != nil {
		return t.fail(1, "Error: failed to create cluster %q: %v", c.Metadata.Name, err)
	}
	t.createAddons(c)
	return 0
}

// createAddons leaves out addons that exist.
func (t toolCall) createAddons(c eksConfig) {
	for _, addon := range c.Addons {
		t.step()
		if _, exists := t.read("addons", c.Metadata.Name, addon.Name); !exists {
			t.write("", "addons", c.Metadata.Name, addon.Name)
		}
	}
}

func eksNodegroup(t toolCall, c eksConfig) error {
	group := c.ManagedNodeGroups[0]
	if len(t.resources("ec2"))+group.DesiredCapacity > eksQuota {
		return fmt.Errorf("AsgInstanceLaunchFailures: VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit")
	}
	return t.createStack(c.Metadata.Name, "nodegroup-"+group.Name, map[string]string{"nodes": fmt.Sprint(group.DesiredCapacity), "instanceType": group.InstanceType})
}

func eksCreateAddon(t toolCall, a arguments) int {
	c, err := readEksConfig(a)
	if _, exists := t.resource("eks", c.Metadata.Name); err != nil || !exists {
		return t.fail(1, "Error: ResourceNotFoundException: No cluster found for name: %s. %v", c.Metadata.Name, err)
	}
	t.createAddons(c)
	return 0
}

// eksCreateNodegroup leaves out nodegroups that exist, as eksctl does for those of a config file.
func eksCreateNodegroup(t toolCall, a arguments) int {
	c, err := readEksConfig(a)
	if _, exists := t.resource("eks", c.Metadata.Name); err != nil || !exists {
		return t.fail(1, "Error: ResourceNotFoundException: No cluster found for name: %s. %v", c.Metadata.Name, err)
	}
	if _, exists := t.resource("stacks", "eksctl-"+c.Metadata.Name+"-nodegroup-"+c.ManagedNodeGroups[0].Name); exists {
		fmt.Fprintln(t.Stdout, "[ℹ]  1 existing nodegroup(s) (nodes) will be excluded")
		return 0
	}
	if err := eksNodegroup(t, c); err != nil {
		return t.fail(1, "Error: %v", err)
	}
	return 0
}

// eksDeleteCluster waits for the nodegroup's stack, and then begins to delete the cluster's.
func eksDeleteCluster(t toolCall, a arguments) int {
	name := a.flags["--name"]
	stack, exists := t.resource("stacks", "eksctl-"+name+"-cluster")
	if !exists {
		return t.fail(1, "Error: cluster %q does not exist", name)
	}
	if group, exists := t.resource("stacks", "eksctl-"+name+"-nodegroup-nodes"); exists {
		group.operate("DELETE_IN_PROGRESS", "")
		t.saveResource(group)
		if err := t.waitForStack(group.Name); err != nil {
			return t.fail(1, "Error: %v", err)
		}
	}
	stack.operate("DELETE_IN_PROGRESS", "")
	t.saveResource(stack)
	t.step()
	return 0
}

func eksScale(t toolCall, a arguments) int {
	name, size := a.flags["--cluster"], 0
	if _, err := fmt.Sscan(a.flags["--nodes"], &size); err != nil {
		return t.fail(1, "Error: invalid argument for \"--nodes\": %v", err)
	}
	if _, exists := t.resource("nodegroups", name); !exists || a.flags["--name"] != "nodes" {
		return t.fail(1, "Error: ResourceNotFoundException: No node group found for name: %s.", a.flags["--name"])
	}
	eksSetNodes(t, name, size, false)
	t.step()
	return 0
}

func runAws(t toolCall) int {
	if len(t.Args) < 2 {
		return t.fail(252, "aws: error: the following arguments are required: command")
	}
	command, ok := map[string]struct {
		spec []string
		run  func(toolCall, arguments) int
	}{
		"cloudformation describe-stacks": {[]string{"--query!", "--output!"}, awsDescribeStacks},
		"cloudformation delete-stack":    {[]string{"--stack-name!"}, awsDeleteStack},
		"ec2 describe-instances":         {[]string{"--filters!", "--query!", "--output!"}, awsDescribeInstances},
		"eks update-kubeconfig":          {[]string{"--name!"}, awsUpdateKubeconfig},
		"eks get-token":                  {[]string{"--cluster-name!", "--region", "--output"}, awsGetToken},
	}[t.Args[0]+" "+t.Args[1]]
	if !ok {
		return t.fail(252, "aws: error: argument operation: Invalid choice: %q", t.Args)
	}
	a, err := parseArguments(t.Args[2:], command.spec...)
	if err != nil {
		return t.fail(252, "aws: error: %v", err)
	}
	if err := awsSignIn(t); err != nil {
		return t.fail(254, "An error occurred (InvalidClientTokenId): %v", err)
	}
	t.step()
	t.advanceOperations("stacks", func(r resource) { cloudFormationEnd(t, r) })
	t.advanceOperations("ec2", nil)
	return command.run(t, a)
}

func awsDescribeStacks(t toolCall, a arguments) int {
	const before, after = "Stacks[?Tags[?Key=='alpha.eksctl.io/cluster-name' && Value=='", "']].[StackName,StackStatus]"
	cluster, ok := strings.CutPrefix(a.flags["--query"], before)
	cluster, complete := strings.CutSuffix(cluster, after)
	if !ok || !complete || a.flags["--output"] != "text" {
		return t.fail(252, "aws: error: the stand-in does not know query %q", a.flags["--query"])
	}
	for _, r := range t.resources("stacks") {
		if r.Fields["cluster"] == cluster {
			fmt.Fprintf(t.Stdout, "%s\t%s\n", r.Name, r.State)
		}
	}
	return 0
}

func awsDeleteStack(t toolCall, a arguments) int {
	if r, exists := t.resource("stacks", a.flags["--stack-name"]); exists {
		r.operate("DELETE_IN_PROGRESS", "")
		t.saveResource(r)
	}
	return 0
}

func awsDescribeInstances(t toolCall, a arguments) int {
	cluster, ok := strings.CutPrefix(a.flags["--filters"], "Name=tag:eks:cluster-name,Values=")
	states := strings.Join(a.rest, " ")
	if !ok || states != "Name=instance-state-name,Values=pending,running,shutting-down,stopping,stopped" ||
		a.flags["--query"] != "Reservations[].Instances[].[InstanceId,State.Name]" || a.flags["--output"] != "text" {
		return t.fail(252, "aws: error: the stand-in does not know %v", a)
	}
	for _, i := range t.resources("ec2") {
		if i.Fields["cluster"] == cluster {
			fmt.Fprintf(t.Stdout, "%s\t%s\n", i.Name, i.State)
		}
	}
	return 0
}

// awsUpdateKubeconfig also fails for a cluster that lacks an addon: its pods would have no network.
func awsUpdateKubeconfig(t toolCall, a arguments) int {
	name := a.flags["--name"]
	if _, exists := t.resource("eks", name); !exists {
		return t.fail(254, "An error occurred (ResourceNotFoundException) when calling the DescribeCluster operation: No cluster found for name: %s.", name)
	}
	if addons := t.list("addons", name); len(addons) != 3 {
		return t.fail(255, "the cluster has the addons %v alone", addons)
	}
	if err := t.writeExecKubeconfig("arn:aws:eks:"+name, "https://"+name+".eks.invalid", "aws", "eks", "get-token", "--cluster-name", name); err != nil {
		return t.fail(255, "%v", err)
	}
	fmt.Fprintln(t.Stdout, "Updated context")
	return 0
}

func awsGetToken(t toolCall, _ arguments) int {
	printExecCredential(t.Stdout)
	return 0
}

// eksDescribeStacks prints the stacks of one cluster, with the reasons of failures.
func eksDescribeStacks(t toolCall, a arguments) int {
	for _, r := range t.resources("stacks") {
		if r.Fields["cluster"] == a.flags["--cluster"] {
			fmt.Fprintf(t.Stdout, "[ℹ]  stack %s %s %s\n", r.Name, r.State, r.Fields["reason"])
		}
	}
	return 0
}
