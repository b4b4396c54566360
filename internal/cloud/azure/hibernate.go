package azure

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

var _ cloud.DepthReporter = Actuator{}

// ReportDepths implements cloud.DepthReporter: virtual machines can hibernate if that is enabled for them.
func (Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{{
		Depth: cloud.DepthSuspend,
		Limits: "Azure hibernates only virtual machines with additionalCapabilities.hibernationEnabled, of sizes with at most 64 GB of memory (112 GB with GPUs), " +
			"and whose guest is configured for it; no spot machines and none of availability sets. It does not reserve capacity for the resume.",
	}}
}

// hibernateObstacle returns why a virtual machine cannot hibernate; "" if it can, as far as its model says.
func hibernateObstacle(vm *armcompute.VirtualMachine) string {
	if vm.Properties != nil && vm.Properties.AdditionalCapabilities != nil && vm.Properties.AdditionalCapabilities.HibernationEnabled != nil &&
		*vm.Properties.AdditionalCapabilities.HibernationEnabled {
		return ""
	}
	return "hibernation is not enabled for it: az vm update --enable-hibernation true enables it for a deallocated virtual machine whose disk and size support it"
}

// addHibernation adds what an instance view says about hibernation.
func (m *machine) addHibernation(statuses []*armcompute.InstanceViewStatus) {
	if _, doing, why := parseStatusCodes(statuses); doing == "failed" {
		m.failure = cmp.Or(why, "Azure gives no reason")
		m.failedAt = timeOfFailure(statuses)
	}
	isHibernated := slices.ContainsFunc(statuses, func(s *armcompute.InstanceViewStatus) bool {
		return s != nil && s.Code != nil && strings.EqualFold(*s.Code, "HibernationState/Hibernated")
	})
	if m.State == cloud.Stopped && isHibernated {
		m.Depth = cloud.DepthSuspend
	}
}

// timeOfFailure returns when the last operation has failed; zero if Azure does not say.
func timeOfFailure(statuses []*armcompute.InstanceViewStatus) time.Time {
	for _, s := range statuses {
		if s != nil && s.Code != nil && s.Time != nil && strings.HasPrefix(strings.ToLower(*s.Code), "provisioningstate/") {
			return *s.Time
		}
	}
	return time.Time{}
}

// hasFailedToHibernate reports whether the last operation was to hibernate the machine, and has failed in the hibernation that began
// at since.
func (m *machine) hasFailedToHibernate(since time.Time) bool {
	return strings.HasPrefix(strings.ToLower(m.failure), "vmhibernate") && (m.failedAt.IsZero() || cloud.IsSince(m.failedAt, since))
}

// cloudMachines returns the machines, sorted by name, with the obstacles to the depth in ref.
func (g *group) cloudMachines(ref cloud.Ref) cloud.Machines {
	ms := make(cloud.Machines, len(g.machines))
	for i, m := range g.machines {
		if cloud.DepthStop.IsDeeperThan(ref.Depth) {
			m.DepthObstacle = m.hibernateObstacle
		}
		ms[i] = m.Machine
	}
	ms.SortByName()
	return ms
}

// putToSleep hibernates or deallocates a virtual machine.
func (g *group) putToSleep(ctx context.Context, ref cloud.Ref, name string) error {
	i := slices.IndexFunc(g.machines, func(m machine) bool { return m.Name == name })
	m := g.machines[i]
	depth := ref.SelectDepth(func(d cloud.Depth) bool { return d == cloud.DepthSuspend && m.hibernateObstacle == "" })
	switch {
	case depth == cloud.DepthSuspend && m.State == cloud.Running:
		return g.hibernate(ctx, ref.Since, m)
	case depth == cloud.DepthSuspend && m.State == cloud.Starting:
		return nil // Azure hibernates only running machines: a later call does
	}
	at := g.locate(name)
	_, err := g.api.BeginDeallocate(ctx, at.group, at.name, nil)
	return g.translateOutcome("stopping", name, err)
}

func (g *group) hibernate(ctx context.Context, since time.Time, m machine) error {
	if m.hasFailedToHibernate(since) {
		return cloud.RefuseDepth(cloud.DepthSuspend, m.Name, "the last operation, which was to hibernate it, failed: "+m.failure)
	}
	at := g.locate(m.Name)
	_, err := g.api.BeginDeallocate(ctx, at.group, at.name, &armcompute.VirtualMachinesClientBeginDeallocateOptions{Hibernate: to.Ptr(true)})
	var said *azcore.ResponseError
	if !errors.As(err, &said) || !refusesHibernation(said) {
		return g.translateOutcome("hibernating", m.Name, err)
	}
	words := redact.Text(g.redactCredentials(responseMessage(said)), g.token)
	if strings.Contains(words, notRunning) && m.failure == "" {
		return fault.NewWait(busyDelay, "hibernating virtual machine %s: Azure asks to try again later (%s)", m.Name, words)
	}
	if m.failure != "" {
		words += " (the last operation on it failed: " + m.failure + ")"
	}
	return cloud.RefuseDepth(cloud.DepthSuspend, m.Name, "Azure refuses to hibernate it: "+words)
}

// notRunning is in Azure's refusal to hibernate a machine because of its state, which has the same code as
// its refusals for other reasons.
const notRunning = "successfully provisioned and is running"

// hibernationRefusals are the error codes, in lower case, with which Azure refuses to hibernate a machine.
var hibernationRefusals = []string{"operationnotallowed", "vmhibernatenotsupported", "vmhibernatefailed"}

// refusesHibernation reports whether Azure would refuse the same request to hibernate a machine again.
func refusesHibernation(said *azcore.ResponseError) bool {
	return slices.Contains(hibernationRefusals, strings.ToLower(said.ErrorCode)) || said.StatusCode == http.StatusBadRequest
}
