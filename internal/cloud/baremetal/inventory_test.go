package baremetal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/fault"
)

const installConfig = `
apiVersion: v1
metadata: {name: c}
controlPlane: {name: master, replicas: 1}
platform:
  baremetal:
    apiVIPs: [10.0.0.1]
    hosts:
      - name: openshift-worker-0
        role: worker
        bootMACAddress: 52:54:00:00:00:02
        bmc:
          address: ipmi://10.0.0.6
          username: admin
          password: password
      - name: openshift-master-0
        role: master
        bootMACAddress: 52:54:00:00:00:01
        rootDeviceHints: {deviceName: /dev/sda}
        bmc:
          address: redfish-virtualmedia://10.0.0.5/redfish/v1/Systems/1
          username: admin
          password: password
          disableCertificateVerification: true
`

func TestHostsAreReadFromTheInstallConfig(t *testing.T) {
	l := labOf(nil)
	l.secrets[named("install")] = map[string]string{"install-config.yaml": installConfig}
	ref := refOf(infraID)
	ref.InstallConfig = "install"
	inv, err := l.readInventory(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.hosts) != 2 {
		t.Fatalf("got %+v", inv.hosts)
	}
	master, worker := inv.hosts[0], inv.hosts[1]
	if master.name != "openshift-master-0" || !master.controlPlane || !master.insecure || master.protocol != redfish || master.password != "password" {
		t.Errorf("got %+v", master)
	}
	if worker.name != "openshift-worker-0" || worker.controlPlane || worker.insecure || worker.protocol != ipmi {
		t.Errorf("got %+v", worker)
	}
}

func TestTheClustersOwnSecretWins(t *testing.T) {
	l := labOf(nil)
	l.secrets[named("install")] = map[string]string{"install-config.yaml": installConfig}
	l.secrets[named("c-12345-bmc")] = map[string]string{"hosts.yaml": "[{name: a, role: master, bmc: {address: 10.0.0.9, username: u, password: p}}]"}
	ref := refOf(infraID)
	ref.InstallConfig = "install"
	inv, err := l.readInventory(t.Context(), ref)
	if err != nil || len(inv.hosts) != 1 || inv.hosts[0].name != "a" {
		t.Errorf("got %+v, %v", inv.hosts, err)
	}
}

// The install-config is not read if it is unknown whether the Secret exists.
func TestASecretThatCannotBeReadIsNotTakenForNone(t *testing.T) {
	p := New(func(context.Context, types.NamespacedName) (map[string][]byte, error) {
		return nil, errors.New("etcd is away")
	}, nil)
	ref := refOf(infraID)
	ref.InstallConfig = "install"
	if _, err := p.Observe(t.Context(), ref); fault.KindOf(err) != fault.Unknown || !strings.Contains(err.Error(), "etcd is away") {
		t.Errorf("got %v", err)
	}
}

func TestASecretOfAnotherClusterHasNoHostsOfOurs(t *testing.T) {
	l := labOf(nil)
	l.secrets[named("c-12345-bmc")] = map[string]string{"infraID": "other\n", "hosts.yaml": "[{name: a, role: master, bmc: {address: 10.0.0.9, username: u, password: p}}]"}
	l.sees(t, "")
}

func TestMistakesInAnInventoryAreNamed(t *testing.T) {
	const bmc = "bmc: {address: 'redfish://10.0.0.9', username: u, password: calvin99}"
	for name, c := range map[string]struct {
		secret map[string]string
		want   string
	}{
		"no key":                    {map[string]string{"hosts": ""}, "Secret ns/c-12345-bmc has no key hosts.yaml"},
		"no list":                   {map[string]string{"hosts.yaml": "calvin99: {"}, "is not a list of hosts"},
		"an install-config":         {map[string]string{"hosts.yaml": installConfig}, "is not a list of hosts"},
		"no PEM":                    {map[string]string{"hosts.yaml": "[]", "ca.crt": "x"}, "key ca.crt of Secret ns/c-12345-bmc contains no PEM"},
		"no name":                   {hosts("{role: master, " + bmc + "}"), "host number 1: it has no name"},
		"another role":              {hosts("{name: a, role: boss, " + bmc + "}"), "host a: its role is not one of"},
		"no role":                   {hosts("{name: a, " + bmc + "}"), "no host has the role master"},
		"no address":                {hosts("{name: a, role: master, bmc: {username: u, password: calvin99}}"), "host a: bmc.address is not like"},
		"an account in the address": {hosts("{name: a, role: master, bmc: {address: 'redfish://u:calvin99@b', username: u, password: p}}"), "move them to bmc.username"},
		"no password":               {hosts("{name: a, role: master, bmc: {address: 10.0.0.9, username: u}}"), "needs both bmc.username and bmc.password"},
		"too long for IPMI":         {hosts("{name: a, role: master, bmc: {address: 10.0.0.9, username: u, password: calvin99calvin99calvin99}}"), "IPMI limits the username to 16"},
		"twice the same name":       {hosts("{name: a, role: master, " + bmc + "}, {name: a, role: master, bmc: {address: 10.0.0.8, username: u, password: p}}"), "hosts a and a have the same"},
		"twice the same BMC":        {hosts("{name: a, role: master, " + bmc + "}, {name: b, role: worker, " + bmc + "}"), "hosts a and b have the same"},
	} {
		t.Run(name, func(t *testing.T) {
			l := labOf(nil)
			l.secrets[named("c-12345-bmc")] = c.secret
			l.fails(t, fault.Denied, c.want, "ns/c-12345-bmc")
			if _, err := l.Observe(t.Context(), refOf(infraID)); strings.Contains(err.Error(), "calvin99") {
				t.Errorf("a password is in: %v", err)
			}
		})
	}
}

func hosts(list string) map[string]string { return map[string]string{"hosts.yaml": "[" + list + "]"} }

func TestWithoutAnyInventoryTheRemedyIsTold(t *testing.T) {
	l := labOf(nil)
	l.fails(t, fault.Denied, "create Secret c-12345-bmc in namespace ns with key hosts.yaml")

	ref := refOf(infraID)
	ref.InstallConfig = "install"
	for _, c := range []struct{ config, want string }{
		{"", "Secret ns/install does not exist"},
		{"platform: {baremetal: {}}", "has no platform.baremetal.hosts: create Secret c-12345-bmc"},
		{"platform: [", "is not an install-config in YAML"},
	} {
		if c.config != "" {
			l.secrets[named("install")] = map[string]string{"install-config.yaml": c.config}
		}
		_, err := l.Observe(t.Context(), ref)
		wantFault(t, err, fault.Denied, c.want, "c-12345-bmc")
	}
}
