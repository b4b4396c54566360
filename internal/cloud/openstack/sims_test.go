//go:build sims

package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	sdk "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/test/sims"
)

// image is an image in Nova's Glance.
const image = "155d900f-4e14-4e4c-a73d-069cbf4541e6"

// real is a Keystone and a Nova from Debian packages.
type real struct {
	AuthURL  string   `json:"auth_url"`
	Region   string   `json:"region"`
	Password string   `json:"password"`
	Statuses []string `json:"statuses"`
	Tasks    []string `json:"tasks"`

	keystone, nova *gophercloud.ServiceClient // of the administrator
	member         string                     // ID of the role
	debian         *sims.Program
	made           int
}

// begin is how long Keystone and Nova may take to start: 10 s on an idle computer.
const begin = 3 * time.Minute

func startReal(t *testing.T) *real {
	t.Helper()
	dir := t.TempDir()
	r := &real{debian: sims.StartScript(t, dir, "keystone-and-nova.py", dir)}
	must(t, json.Unmarshal([]byte(r.debian.WaitForLine(t, begin, "Keystone and Nova listen")), r))
	r.keystone, r.nova = r.clients(t, gophercloud.AuthOptions{
		IdentityEndpoint: r.AuthURL, Username: "admin", Password: r.Password, DomainID: "default",
		Scope: &gophercloud.AuthScope{ProjectName: "admin", DomainID: "default"},
	})
	all, err := roles.List(r.keystone, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	must(t, err)
	found, err := roles.ExtractRoles(all)
	must(t, err)
	r.member = found[0].ID
	return r
}

func (r *real) clients(t *testing.T, as gophercloud.AuthOptions) (keystone, nova *gophercloud.ServiceClient) {
	t.Helper()
	as.AllowReauth = true
	p, err := sdk.NewClient(as.IdentityEndpoint)
	must(t, err)
	p.HTTPClient.Timeout = time.Minute
	must(t, sdk.Authenticate(t.Context(), p, as))
	keystone, err = sdk.NewIdentityV3(p, gophercloud.EndpointOpts{Region: r.Region})
	must(t, err)
	nova, err = sdk.NewComputeV2(p, gophercloud.EndpointOpts{Region: r.Region})
	must(t, err)
	nova.Microversion = microversion
	return keystone, nova
}

// tenant is a project with its own user.
type tenant struct {
	*real
	*lab
	project, user  string
	keystone, nova *gophercloud.ServiceClient // of the user
	off            string                     // the status in which its servers are created: SHUTOFF
}

func (r *real) tenant(t *testing.T) *tenant {
	t.Helper()
	r.made++
	name := fmt.Sprintf("t%d", r.made)
	p, err := projects.Create(t.Context(), r.keystone, projects.CreateOpts{Name: name, DomainID: "default"}).Extract()
	must(t, err)
	u, err := users.Create(t.Context(), r.keystone, users.CreateOpts{Name: name, DomainID: "default", Password: password}).Extract()
	must(t, err)
	must(t, roles.Assign(t.Context(), r.keystone, r.member, roles.AssignOpts{UserID: u.ID, ProjectID: p.ID}).ExtractErr())
	te := &tenant{real: r, lab: &lab{secrets: map[string]map[string][]byte{}}, project: p.ID, user: u.ID, off: "SHUTOFF"}
	te.keystone, te.nova = r.clients(t, gophercloud.AuthOptions{
		IdentityEndpoint: r.AuthURL, UserID: u.ID, Password: password, Scope: &gophercloud.AuthScope{ProjectID: p.ID},
	})
	te.logIn(map[string]any{
		"username": name, "password": password, "user_domain_name": "Default", "project_name": name, "project_domain_name": "Default",
	})
	te.Actuator = New(te.secret, nil)
	return te
}

// logIn sets the credentials with which hotspare logs in.
func (te *tenant) logIn(auth map[string]any) {
	auth["auth_url"] = te.AuthURL
	raw, err := json.Marshal(map[string]any{"clouds": map[string]any{"lab": map[string]any{"auth": auth, "region_name": te.Region}}})
	if err != nil {
		panic(err)
	}
	te.secrets["os-creds"] = map[string][]byte{secretKey: raw}
}

// boot creates servers that are off; if n is greater than 1, their names are numbered.
func (te *tenant) boot(t *testing.T, infraID, name string, n int) {
	t.Helper()
	_, err := servers.Create(t.Context(), te.nova, servers.CreateOpts{
		Name: infraID + "-" + name, ImageRef: image, FlavorRef: "1", Networks: "none", Min: n, Max: n,
		Metadata: map[string]string{clusterKey: infraID},
	}, nil).Extract()
	must(t, err)
	var ids []string
	te.until(t, "servers are made", func() bool {
		ids = nil
		for _, s := range te.list(t) {
			if s.Status == "ERROR" {
				t.Fatalf("%s cannot be made: %s", s.Name, s.Fault.Message)
			}
			if s.Status == "BUILD" || s.Task != "" {
				return false
			}
			if s.Status == "ACTIVE" {
				ids = append(ids, s.ID)
			}
		}
		return true
	})
	must(t, each(t.Context(), ids, func(ctx context.Context, id string) error {
		if te.off == "SHUTOFF" {
			return servers.Stop(ctx, te.nova, id).ExtractErr()
		}
		return servers.Shelve(ctx, te.nova, id).ExtractErr()
	}))
	te.until(t, "servers are off", func() bool {
		for _, s := range te.list(t) {
			if s.Status != te.off {
				return false
			}
		}
		return true
	})
}

func each(ctx context.Context, ids []string, do func(context.Context, string) error) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, do(ctx, id))
	}
	return errors.Join(errs...)
}

func (te *tenant) list(t *testing.T) []server {
	t.Helper()
	all, err := servers.List(te.nova, servers.ListOpts{}).AllPages(t.Context())
	must(t, err)
	var out []server
	must(t, servers.ExtractServersInto(all, &out))
	return out
}

func (te *tenant) id(t *testing.T, name string) string {
	t.Helper()
	for _, s := range te.list(t) {
		if s.Name == name {
			return s.ID
		}
	}
	t.Fatalf("no server %s", name)
	return ""
}

func (te *tenant) status(t *testing.T, id, want string) {
	t.Helper()
	te.until(t, id+" is "+want, func() bool {
		var s server
		must(t, servers.Get(t.Context(), te.nova, id).ExtractInto(&s))
		return s.Status == want && s.Task == ""
	})
}

func (te *tenant) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited for 2 minutes, and in vain, until %s: %+v\n%s", what, te.list(t), te.debian.OutputTail())
		}
		time.Sleep(20 * time.Millisecond) // a real cloud uses real time
	}
}

// clear deletes the project's servers: all servers use capacity of the same host.
func (te *tenant) clear(t *testing.T) {
	t.Helper()
	all, err := servers.List(te.real.nova, servers.ListOpts{AllTenants: true, TenantID: te.project}).AllPages(context.WithoutCancel(t.Context()))
	must(t, err)
	var left []server
	must(t, servers.ExtractServersInto(all, &left))
	for _, s := range left {
		_ = servers.ForceDelete(context.WithoutCancel(t.Context()), te.real.nova, s.ID).ExtractErr() // it may already be deleted
	}
}

func (te *tenant) cloud(t *testing.T) cloudtest.Cloud {
	t.Helper()
	t.Cleanup(func() { te.clear(t) })
	return cloudtest.Cloud{
		Actuator: te.Actuator,
		Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
			te.boot(t, infraID, "master-0", 1)
			te.boot(t, infraID, "worker-0", workers)
			ref := refTo(infraID, nil)
			ref.Shelve = te.off != "SHUTOFF"
			return ref
		},
		Vanish: func(t *testing.T, _ cloud.Ref, name string) {
			id := te.id(t, name)
			must(t, servers.Delete(t.Context(), te.nova, id).ExtractErr())
			te.until(t, name+" is gone", func() bool {
				return gophercloud.ResponseCodeIs(servers.Get(t.Context(), te.nova, id).Err, http.StatusNotFound)
			})
		},
		Break: func(t *testing.T, _ cloud.Ref, name string) {
			must(t, servers.ResetState(t.Context(), te.real.nova, te.id(t, name), servers.StateError).ExtractErr())
		},
		Depths: []cloud.Depth{cloud.DepthFreeze, cloud.DepthSuspend},
		Faults: cloudtest.Faults{
			Expire: func(t *testing.T) {
				no := false
				must(t, users.Update(t.Context(), te.real.keystone, te.user, users.UpdateOpts{Enabled: &no}).Err)
			},
			Refuse: func(t *testing.T, _ cloud.Ref, name string) {
				must(t, servers.Lock(t.Context(), te.real.nova, te.id(t, name)).ExtractErr())
			},
			Odd: func(t *testing.T, _ cloud.Ref, name string) {
				te.debian.SendCommand(t, te.id(t, name))
				te.debian.WaitForLine(t, time.Minute, "Nova has put "+name+" into a state that it does not know")
			},
			Planted: []string{password},
		},
	}
}

func TestRealNova(t *testing.T) {
	r := startReal(t)
	t.Run("stop", func(t *testing.T) {
		cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud { return r.tenant(t).cloud(t) })
	})
	t.Run("shelve", func(t *testing.T) {
		cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
			te := r.tenant(t)
			te.off = "SHELVED_OFFLOADED"
			return te.cloud(t)
		})
	})
	t.Run("every status and task that it has is known", func(t *testing.T) {
		for _, s := range r.Statuses {
			if statusStates[s] == "" && !deletedStatuses[s] {
				t.Errorf("status %s is not known", s)
			}
		}
		for _, task := range r.Tasks {
			if _, ok := taskStates[task]; !ok {
				t.Errorf("task %s is not known", task)
			}
		}
		if len(r.Statuses) < 15 || len(r.Tasks) < 30 {
			t.Errorf("only %d statuses and %d tasks", len(r.Statuses), len(r.Tasks))
		}
	})
	t.Run("what is paused or suspended goes on", r.goesOn)
	t.Run("an application credential logs in", r.credential)
	t.Run("a marker that is gone", r.marker)
	t.Run("servers on several pages are all seen", r.pages)
}

// Nova returns pages of 5 here. It needs minutes to create hundreds of servers, as the suite does.
func (r *real) pages(t *testing.T) {
	te := r.tenant(t)
	defer te.clear(t)
	te.boot(t, infraID, "worker", 12)
	if got := te.observe(t, refTo(infraID, nil)); len(got) != 12 || !got.AllIn(cloud.Stopped) {
		t.Errorf("saw %d: %v", len(got), got)
	}
}

func (r *real) goesOn(t *testing.T) {
	te := r.tenant(t)
	defer te.clear(t)
	te.boot(t, infraID, "master-0", 1)
	ref, id := refTo(infraID, nil), te.id(t, infraID+"-master-0")
	must(t, te.Start(t.Context(), ref))
	te.status(t, id, "ACTIVE")
	must(t, servers.Pause(t.Context(), te.nova, id).ExtractErr())
	te.status(t, id, "PAUSED")
	te.sees(t, ref, "master-0 Stopped (freeze)")
	must(t, te.Start(t.Context(), ref))
	te.status(t, id, "ACTIVE")
	must(t, servers.Suspend(t.Context(), te.nova, id).ExtractErr())
	te.status(t, id, "SUSPENDED")
	te.sees(t, ref, "master-0 Stopped (suspend)")
	must(t, te.Start(t.Context(), ref))
	te.status(t, id, "ACTIVE")
	te.sees(t, ref, "master-0 Running")
	// The events of a server are readable, and those of the suspension tell of no failure.
	ref.Since, ref.Depth = time.Now().Add(-time.Hour), cloud.DepthSuspend
	must(t, te.Stop(t.Context(), ref))
	te.status(t, id, "SUSPENDED")
}

func (r *real) credential(t *testing.T) {
	te := r.tenant(t)
	c, err := applicationcredentials.Create(t.Context(), te.keystone, te.user, applicationcredentials.CreateOpts{Name: "hotspare"}).Extract()
	must(t, err)
	te.logIn(map[string]any{"application_credential_id": c.ID, "application_credential_secret": c.Secret})
	te.sees(t, refTo(infraID, nil), "")
	must(t, applicationcredentials.Delete(t.Context(), te.keystone, te.user, c.ID).ExtractErr())
	_, err = te.Observe(t.Context(), refTo(infraID, nil))
	mustSay(t, err, fault.Denied, where...)
	if strings.Contains(err.Error(), c.Secret) {
		t.Errorf("a secret is told: %v", err)
	}
}

func (r *real) marker(t *testing.T) {
	te := r.tenant(t)
	who, err := te.readClusterIdentity(t.Context(), refTo(infraID, nil))
	must(t, err)
	s, err := who.openSession(t.Context())
	must(t, err)
	defer s.closeIdleConnections()
	_, err = s.listServerPage(t.Context(), "00000000-0000-4000-8000-000000000000")
	mustSay(t, s.translateError("listing", err), fault.Wait, "was deleted while the servers were listed")
}
