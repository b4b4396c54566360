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

// clusterKey is the installer's mark: a key of metadata, and the first part of a tag.
const clusterKey = "openshiftClusterID"

// pageSize is how many servers to ask for at once. Nova takes long for many, and may
// give fewer.
const pageSize = 200

// observation is one look at a cluster.
type observation struct {
	infraID string
	// servers by the name that users see.
	servers map[string]*server
	// hidden tells of servers that Nova cannot tell of now; nil if there are none.
	hidden error
}

type page struct {
	Servers []*server          `json:"servers"`
	Links   []gophercloud.Link `json:"servers_links"`
}

// listServers lists the servers of a cluster, on all pages of the project's. Nova cannot
// filter by metadata, so all of the project are listed.
func (s *session) listServers(ctx context.Context, infraID string) (*observation, error) {
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
			return nil, fault.NewWait(busyDelay, "listing servers of project %s: Nova gives the same page again and again", s.projectName())
		}
		marker = got.Servers[len(got.Servers)-1].ID
	}
	return newObservation(infraID, all), nil
}

// listServerPage gets the servers behind the one with ID marker. Nova's own links to the next page
// are not followed: behind a proxy they often lead elsewhere, and without TLS.
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
			hidden++ // it is in a cell that is down: Nova knows its ID, and not even its marks
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
			name += " (" + srv.ID + ")" // Nova does not mind, and users must know which
		}
		seen.servers[name] = srv
	}
	if hidden > 0 {
		seen.hidden = fault.NewWait(busyDelay, "listing servers of %s: a part of the cloud is down, and servers of the project are in it: "+
			"whether they are the cluster's, Nova cannot tell now", infraID)
	}
	return seen
}

// clusterInfraID is the infraID that the server is marked with. Metadata counts before tags: the
// installer's own destroy goes by it.
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

func (s *observation) toCloudMachines() cloud.Machines {
	ms := make(cloud.Machines, 0, len(s.servers))
	for name, srv := range s.servers {
		m := cloud.Machine{Name: name, ControlPlane: strings.HasPrefix(srv.Name, s.infraID+"-master-")}
		m.State, m.Reason = srv.machineState()
		ms = append(ms, m)
	}
	ms.SortByName()
	return ms
}
