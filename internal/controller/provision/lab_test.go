package provision

import (
	"context"
	"fmt"
	"strings"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install"
)

// lab is an executor that makes clusters in a map, and complains when it is
// asked for what must not happen: two clusters at a time, a cluster that its
// object does not name, one that was destroyed before, the destruction of one
// that is still wanted. It outlives the processes that ask it, as clouds do.
type lab struct {
	w *world
	// polls is how often Install and Destroy say Running first.
	polls int
	// failures is how many attempts fail; undead is how often destroying fails.
	failures, undead int
	// prepareErr, installErr and destroyErr are returned instead of an answer.
	prepareErr, installErr, destroyErr error

	prepared int
	requests []install.Request
	asked    map[string]int
	alive    map[string]bool
	dead     map[string]bool
	destroys []install.Metadata
	places   []install.ClusterTarget
}

func newLab(w *world) *lab {
	return &lab{w: w, asked: map[string]int{}, alive: map[string]bool{}, dead: map[string]bool{}}
}

func (l *lab) Prepare(_ context.Context, req install.Request) (install.Metadata, error) {
	if l.prepareErr != nil {
		return install.Metadata{}, l.prepareErr
	}
	l.prepared++
	id := fmt.Sprintf("%s-%d-%d", req.Cluster.Name, req.Attempt, l.prepared)
	return install.Metadata{
		InfraID: id, ClusterID: "id-of-" + id, Raw: fmt.Appendf(nil, `{"infraID":%q}`, id),
	}, nil
}

func (l *lab) Install(_ context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	if l.installErr != nil {
		return install.Result{}, l.installErr
	}
	l.requests = append(l.requests, req)
	id := md.InfraID
	if !l.alive[id] {
		l.begin(id)
	}
	l.asked["install "+id]++
	switch {
	case l.asked["install "+id] <= l.polls:
		return install.Result{Phase: install.Running, InstallerImage: "q/installer", CLIImage: "q/cli"}, nil
	case req.Attempt < l.failures:
		return install.Result{Phase: install.Failed, Reason: "QuotaExceeded", Log: "pulling with hunter2\nno room for " + id + " with hunter2\n"}, nil
	}
	return install.Result{
		Phase:      install.Succeeded,
		Kubeconfig: []byte("kubeconfig of " + id), Password: "password of " + id,
		APIURL: "https://api", WebConsoleURL: "https://console", Version: "4.18.20",
	}, nil
}

func (l *lab) begin(id string) {
	l.w.t.Helper()
	cd := l.w.cluster()
	switch {
	case l.dead[id]:
		l.w.t.Errorf("%s was destroyed and is to be installed again", id)
	case len(l.alive) > 0:
		l.w.t.Errorf("%s is to be installed while %v is alive", id, l.alive)
	case cd != nil && hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake): // there is nothing to destroy
	case cd == nil || cd.Spec.ClusterMetadata == nil || cd.Spec.ClusterMetadata.InfraID != id:
		l.w.t.Errorf("%s is to be installed and the cluster does not name it", id)
	}
	l.alive[id] = true
}

func (l *lab) Destroy(_ context.Context, at install.ClusterTarget, md install.Metadata) (install.Result, error) {
	if l.destroyErr != nil {
		return install.Result{}, l.destroyErr
	}
	l.destroys, l.places = append(l.destroys, md), append(l.places, at)
	id := md.InfraID
	l.spare(id)
	l.asked["destroy "+id]++
	switch asked := l.asked["destroy "+id]; {
	case asked <= l.undead:
		return install.Result{Phase: install.Failed, Log: "a disk is in use\n"}, nil
	case asked <= l.undead+l.polls:
		return install.Result{Phase: install.Running}, nil
	}
	delete(l.alive, id)
	l.dead[id] = true
	return install.Result{Phase: install.Succeeded}, nil
}

// spare complains about the destruction of what is wanted.
func (l *lab) spare(id string) {
	l.w.t.Helper()
	cd := l.w.cluster()
	if cd == nil || isDeleting(cd) {
		return
	}
	for _, cp := range l.w.attempts() {
		if *cp.Spec.InfraID == id && cp.Spec.Stage != hivev1.StageFailed {
			l.w.t.Errorf("%s is to be destroyed, and attempt %d is %s", id, cp.Spec.Attempt, cp.Spec.Stage)
		}
	}
}

// left lists what is alive.
func (l *lab) left() string {
	var ids []string
	for id := range l.alive {
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}
