package config

import (
	"encoding/json"
	"fmt"
	"regexp"

	"hotspare.io/hotspare/internal/fault"
)

// Machines are those that openshift-install creates.
type Machines struct {
	ControlPlane MachineGroup
	Compute      []MachineGroup
}

// A MachineGroup is a number of machines of one instance type.
type MachineGroup struct {
	// Type is the instance type; empty if the installer chooses it.
	Type     string
	Replicas int64
}

// defaultReplicas is how many machines openshift-install creates in a group without a number.
const defaultReplicas = 3

// instanceTypePattern matches the instance types of all clouds, such as m6i.xlarge, Standard_D4s_v3 and n2-standard-4.
// A text without a separator, which may be a misplaced password, is none.
var instanceTypePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,30}([._-][A-Za-z0-9]{1,30}){1,6}$`)

// ListMachines returns the machines of a rendered install-config, for a platform whose machines have instance types.
//
// The result contains numbers and instance types only. The error is fault.Denied and names paths and the kinds of the
// values there; of the document it quotes numbers of machines only: users who may not read the document may see it.
func ListMachines(raw []byte, platform string) (Machines, error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return Machines{}, fault.NewDenied("it is not a YAML mapping")
	}
	m := machineReader{platform: platform}
	m.usual = m.readType("", doc, "platform."+platform+".defaultMachinePlatform.type")
	out := Machines{ControlPlane: m.readGroup("controlPlane", doc["controlPlane"])}
	compute := doc["compute"]
	if compute != nil && !isList(compute) {
		m.problems.addProblem("compute", "is %s, want a list", describeKind(compute))
	}
	for i, pool := range toList(compute) {
		out.Compute = append(out.Compute, m.readGroup(fmt.Sprintf("compute[%d]", i), pool))
	}
	if len(out.Compute) == 0 {
		out.Compute = []MachineGroup{{Type: m.usual, Replicas: defaultReplicas}} // as openshift-install does
	}
	return out, m.problems.deniedError()
}

// A machineReader reads the machines of a document.
type machineReader struct {
	platform string
	// usual is the instance type of groups that name none; empty if the document has none.
	usual    string
	problems problems
}

// readGroup reads a group of machines, which may be absent.
func (m *machineReader) readGroup(path string, v any) MachineGroup {
	m.problems.checkMachines(path, v)
	group, _ := v.(map[string]any)
	out := MachineGroup{Type: m.usual, Replicas: defaultReplicas}
	if n, ok := group["replicas"].(json.Number); ok {
		out.Replicas, _ = n.Int64() // checkMachines has reported a number that is not whole
	}
	if own := m.readType(path+".", group, "platform."+m.platform+".type"); own != "" {
		out.Type = own
	}
	return out
}

// readType returns the instance type at a path below a mapping, which is itself at a prefix; "" if there is none.
func (m *machineReader) readType(prefix string, in document, path string) string {
	v := in.valueAt(path)
	if isEmptyValue(v) {
		return ""
	}
	text, isText := v.(string)
	switch {
	case !isText:
		m.problems.addProblem(prefix+path, "is %s, want a string", describeKind(v))
		return ""
	case !instanceTypePattern.MatchString(text):
		m.problems.addProblem(prefix+path, "is not the name of an instance type: write one such as m6i.xlarge")
		return ""
	}
	return text
}
