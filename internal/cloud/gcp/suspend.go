package gcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

var _ cloud.DepthReporter = Actuator{}

// ReportDepths implements cloud.DepthReporter: instances can be suspended.
func (Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{{
		Depth: cloud.DepthSuspend,
		Limits: "Google bills the memory of a suspended instance as storage, and stops the instance after 60 days. " +
			"It cannot suspend instances with more than 208 GB of memory, with GPUs or local SSDs, Confidential VMs, bare metal, or guests without support for ACPI S3.",
	}}
}

// suspendObstacle returns why an instance cannot be suspended, as far as its list entry says; "" if it
// can.
func suspendObstacle(i *compute.Instance) string {
	switch {
	case len(i.GuestAccelerators) > 0:
		return "it has GPUs, and Google does not suspend such instances"
	case hasLocalSSD(i):
		return "it has a local SSD, whose data a suspension may lose while programs use it"
	case i.ConfidentialInstanceConfig != nil && i.ConfidentialInstanceConfig.EnableConfidentialCompute:
		return "it is a Confidential VM, which Google does not suspend"
	case strings.HasSuffix(i.MachineType, "-metal"):
		return "it is a bare metal instance, which Google does not suspend"
	}
	return ""
}

// canSleepAt returns whether an instance can sleep at a depth other than stop.
func canSleepAt(i *compute.Instance, d cloud.Depth) bool {
	return d == cloud.DepthSuspend && suspendObstacle(i) == ""
}

// depthObstacle returns why an instance sleeps deeper than ref asks for.
func depthObstacle(ref cloud.Ref, i *compute.Instance) string {
	if cloud.DepthStop.IsDeeperThan(ref.Depth) {
		return suspendObstacle(i)
	}
	return ""
}

// putToSleep suspends or stops an instance, which users know as name.
func (p *project) putToSleep(ctx context.Context, ref cloud.Ref, name string, i *compute.Instance) error {
	depth := ref.SelectDepth(func(d cloud.Depth) bool { return canSleepAt(i, d) })
	if depth != cloud.DepthSuspend {
		return p.stopInstance(ctx, i)
	}
	switch i.Status {
	case "RUNNING":
		return p.suspendInstance(ctx, ref, name, i)
	case "PENDING":
		return p.stopInstance(ctx, i) // it waits for capacity, and has no memory
	default:
		return nil // Google suspends only running instances: it is starting, and a later call suspends it
	}
}

func (p *project) suspendInstance(ctx context.Context, ref cloud.Ref, name string, i *compute.Instance) error {
	failure, err := p.findFailedSuspension(ctx, ref.Since, i)
	if fault.KindOf(err) == fault.Denied {
		return cloud.RefuseDepth(cloud.DepthSuspend, name, "it is unknown whether Google could suspend it: "+err.Error())
	}
	if err != nil {
		return err
	}
	if failure != "" {
		return cloud.RefuseDepth(cloud.DepthSuspend, name, "Google could not suspend it: "+failure)
	}
	op, err := p.api.Instances.Suspend(p.ID, zoneName(i), i.Name).Context(ctx).Do()
	reason := p.refusalReason(op, err)
	if reason == "" {
		return p.translateOutcome("suspending", i, op, err)
	}
	// Google also refuses to suspend an instance that is not running any more.
	running, err := p.isRunning(ctx, i)
	if err != nil || !running {
		return err
	}
	return cloud.RefuseDepth(cloud.DepthSuspend, name, "Google refuses to suspend it: "+reason)
}

// findFailedSuspension returns the error of the last operation that was to suspend the instance, "" if it
// did not fail. Google reports in the operation that a guest did not react; the instance runs again then.
// Operations from before the hibernation, which began at since, do not count.
func (p *project) findFailedSuspension(ctx context.Context, since time.Time, i *compute.Instance) (string, error) {
	if since.IsZero() {
		return "", nil // this hibernation has not requested anything yet
	}
	filter := fmt.Sprintf(`(operationType = "suspend") (targetId = %d)`, i.Id)
	got, err := p.api.ZoneOperations.List(p.ID, zoneName(i)).Filter(filter).Fields("items(insertTime,status,error)").Context(ctx).Do()
	if err != nil {
		return "", p.translateError("listing operations of instance "+i.Name, err)
	}
	var last time.Time
	failure := ""
	for _, op := range got.Items {
		at, err := time.Parse(time.RFC3339, op.InsertTime)
		if err != nil || !cloud.IsSince(at, since) || at.Before(last) {
			continue
		}
		last, failure = at, p.operationErrors(op)
	}
	return failure, nil
}

// isRunning reads the state of an instance again.
func (p *project) isRunning(ctx context.Context, i *compute.Instance) (bool, error) {
	key := instanceKey(i)
	again := &observation{selected: selection{key: {Instance: cloud.Instance{Name: key}}}, instances: map[string]*compute.Instance{}}
	if err := p.addInstances(ctx, again, regexp.QuoteMeta(i.Name)); err != nil {
		return false, err
	}
	now := again.instances[key]
	return now != nil && now.Status == "RUNNING", again.hidden
}

// refusedOperations are the error codes of operations, in lower case, that the same request would get
// again.
var refusedOperations = map[string]bool{
	"unsupported_operation": true,
	"invalid_usage":         true,
	"bad_request":           true,
}

// refusalReason returns why Google permanently refuses a request for an instance; "" if it does not.
func (p *project) refusalReason(op *compute.Operation, err error) string {
	var said *googleapi.Error
	if errors.As(err, &said) && isRefusal(err) {
		return redact.Text(said.Message, p.token)
	}
	if err != nil || op.Error == nil {
		return ""
	}
	for _, e := range op.Error.Errors {
		if !refusedOperations[strings.ToLower(e.Code)] {
			return ""
		}
	}
	return p.operationErrors(op)
}

// operationErrors returns the errors of an operation as text.
func (p *project) operationErrors(op *compute.Operation) string {
	if op.Error == nil {
		return ""
	}
	var all []string
	for _, e := range op.Error.Errors {
		all = append(all, e.Code+": "+e.Message)
	}
	return redact.Text(strings.Join(all, "; "), p.token)
}

// isRefusal reports whether err is Google's answer to a request that the instance, as it is, does not
// allow, or that the credentials do not allow: those that may not suspend may stop. A temporary problem is neither.
func isRefusal(err error) bool {
	var said *googleapi.Error
	if !errors.As(err, &said) {
		return false
	}
	switch said.Code {
	case http.StatusBadRequest, http.StatusNotImplemented:
		return errorKind(said) != fault.Wait
	case http.StatusForbidden:
		return errorKind(said) == fault.Denied
	}
	return false
}

// isClientError reports whether err is Google's answer to a request that the instance does not allow in
// its state, now or ever.
func isClientError(err error) bool {
	var said *googleapi.Error
	return errors.As(err, &said) && slices.Contains([]int{http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusNotImplemented}, said.Code)
}
