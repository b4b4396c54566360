package openstack

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// clusterKey is the installer's mark: a metadata key, and the first part of a tag.
const clusterKey = "openshiftClusterID"

// pageSize is the number of servers to request at once. Nova is slow for large pages, and may
// return fewer.
const pageSize = 200

// observation is the result of listing a cluster's servers once.
type observation struct {
	infraID string
	// selected is nil for the servers of an infraID.
	selected selection
	// servers maps the names that users see to servers.
	servers map[string]*server
	// hidden is the error for servers whose state Nova does not know now; nil if there are none.
	hidden error
}

type page struct {
	Servers []*server          `json:"servers"`
	Links   []gophercloud.Link `json:"servers_links"`
}

// listServers lists the servers of a cluster, or those of a selection, from all pages of the
// project's servers. Nova can filter neither by metadata nor by several IDs, so it must list the
// whole project.
func (s *session) listServers(ctx context.Context, infraID string, want selection) (*observation, error) {
	all := map[string]*server{}
	for marker := ""; ; {
		got, err := s.listServerPage(ctx, marker)
		if err != nil {
			return nil, s.translateError("listing servers of project "+s.projectName(), err)
		}
		before := len(all)
		for _, srv := range got.Servers {
			all[srv.ID] = srv
		}
		if !slices.ContainsFunc(got.Links, func(l gophercloud.Link) bool { return l.Rel == "next" }) || len(got.Servers) == 0 {
			break
		}
		if len(all) == before {
			return nil, fault.NewWait(busyDelay, "listing servers of project %s: Nova returns the same page repeatedly", s.projectName())
		}
		marker = got.Servers[len(got.Servers)-1].ID
	}
	if want != nil {
		return newSelectedObservation(infraID, want, all), nil
	}
	return newObservation(infraID, all), nil
}

// listServerPage returns the servers after the one with ID marker. It does not follow Nova's own
// links to the next page: behind a proxy they often have the wrong host or no TLS.
func (s *session) listServerPage(ctx context.Context, marker string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout)
	defer cancel()
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if marker != "" {
		query.Set("marker", marker)
	}
	var got page
	_, err := s.nova.Get(ctx, s.nova.ServiceURL("servers", "detail")+"?"+query.Encode(), &got, nil) //nolint:bodyclose // the SDK has read and closed it
	return got, err
}

func newObservation(infraID string, all map[string]*server) *observation {
	seen := &observation{infraID: infraID, servers: map[string]*server{}}
	var ours []*server
	hidden := 0
	for _, srv := range all {
		switch {
		case srv.Status == "UNKNOWN" && srv.Name == "":
			hidden++ // its cell is down: Nova knows only its ID, not its metadata or tags
		case clusterInfraID(srv) == infraID && !deletedStatuses[srv.Status]:
			ours = append(ours, srv)
		}
	}
	twins := map[string]int{}
	for _, srv := range ours {
		twins[srv.Name]++
	}
	for _, srv := range ours {
		name := srv.Name
		if twins[name] > 1 {
			name += " (" + srv.ID + ")" // Nova allows duplicate names, and users must be able to distinguish them
		}
		seen.servers[name] = srv
	}
	if hidden > 0 {
		seen.hidden = fault.NewWait(busyDelay, "listing servers of %s: a part of the cloud is down and contains servers of the project: "+
			"Nova cannot determine now whether they belong to the cluster", infraID)
	}
	return seen
}

// clusterInfraID returns the infraID that the server is marked with. Metadata takes precedence over
// tags, because the installer's own destroy uses it.
func clusterInfraID(srv *server) string {
	if id, ok := srv.Metadata[clusterKey]; ok {
		return id
	}
	for _, tag := range srv.Tags {
		if id, ok := strings.CutPrefix(tag, clusterKey+"="); ok {
			return id
		}
	}
	return ""
}

func (o *observation) toCloudMachines() cloud.Machines {
	ms := make(cloud.Machines, 0, len(o.servers))
	for name, srv := range o.servers {
		m := cloud.Machine{Name: name, ControlPlane: strings.HasPrefix(srv.Name, o.infraID+"-master-")}
		if one, ok := o.selected[strings.ToLower(srv.ID)]; ok {
			m.ControlPlane, m.ProviderID = one.ControlPlane, one.ProviderID
		}
		m.State, m.Reason = srv.machineState()
		if m.State == cloud.Stopped {
			m.Depth = statusDepths[srv.Status]
		}
		ms = append(ms, m)
	}
	ms.SortByName()
	return ms
}
