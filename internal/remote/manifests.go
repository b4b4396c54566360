package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/helmchart"
	"hotspare.io/hotspare/internal/redact"
)

// manifestFieldManager is the field manager of applied manifests.
const manifestFieldManager = "hotspare"

// maxMessageLength is the length at which the words of a cluster about an object are cut.
const maxMessageLength = 300

// TakeStep attempts a step of a bootstrap in the cluster whose admin kubeconfig is in the Secret: it applies the
// manifests of the step in their order, and reports whether every object is current, runs its Job, and reports
// whether it is complete, or installs its chart. It may be repeated. A cluster that does not answer yields an Outcome
// that says so; an error is the hub's own. secrets are texts that the message must not contain.
func (c *Connector) TakeStep(ctx context.Context, secret types.NamespacedName, step bootstrap.Step, secrets []string) (bootstrap.Outcome, error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil {
		return bootstrap.Outcome{}, err
	}
	if trouble != "" {
		return bootstrap.Outcome{Message: "the cluster does not answer: " + trouble}, nil
	}
	m := manifestApplier{spokeClient: a, secrets: secrets, resources: map[schema.GroupVersionKind]metav1.APIResource{}, render: c.RenderChart}
	switch {
	case step.Job != nil:
		return m.runJob(ctx, *step.Job), nil
	case step.Chart != nil:
		return m.installChart(ctx, *step.Chart), nil
	default:
		return m.applyManifests(ctx, step.Manifests), nil
	}
}

// A manifestApplier applies the manifests of one attempt.
type manifestApplier struct {
	*spokeClient
	secrets []string
	// resources are those that the cluster serves, as far as they are known.
	resources map[schema.GroupVersionKind]metav1.APIResource
	// render renders charts.
	render RenderFunc
}

// A RenderFunc renders a Helm chart. An error may quote values and templates.
type RenderFunc func(context.Context, helmchart.Request) ([]helmchart.Phase, error)

// A manifestState is what the cluster says about one manifest; the zero value is current.
type manifestState struct {
	waiting, failed string
	// final is set, with failed, if applying the manifest again cannot change that.
	final bool
}

// applyManifests applies every manifest, even if one is refused or waits for another: a namespace may come after
// its objects, and a kind is served some time after its CustomResourceDefinition is applied. Each attempt applies
// all of them again.
func (a manifestApplier) applyManifests(ctx context.Context, manifests []bootstrap.Manifest) bootstrap.Outcome {
	var waiting, failed []string
	final := false
	for _, m := range manifests {
		s, err := a.applyManifest(ctx, m)
		if err != nil {
			return bootstrap.Outcome{Message: "the cluster does not answer: " + describeNoAnswer(err)}
		}
		if s.waiting != "" {
			waiting = append(waiting, describeManifest(m.Object)+": "+s.waiting)
		}
		if s.failed != "" {
			failed = append(failed, describeManifest(m.Object)+": "+s.failed)
			final = final || s.final
		}
	}
	switch {
	case len(failed) > 0:
		return bootstrap.Outcome{Failed: true, Final: final, Message: joinFirst(failed)}
	case len(waiting) > 0:
		return bootstrap.Outcome{Message: "waiting for " + joinFirst(waiting)}
	default:
		return bootstrap.Outcome{Done: true}
	}
}

func describeManifest(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// joinFirst joins the first texts, and says how many more there are.
func joinFirst(list []string) string {
	words := strings.Join(list[:min(len(list), maxNamed)], "; ")
	if n := len(list) - maxNamed; n > 0 {
		words += fmt.Sprintf("; and %d more", n)
	}
	return words
}

// applyManifest applies a manifest. An error is one of the connection.
func (a manifestApplier) applyManifest(ctx context.Context, m bootstrap.Manifest) (manifestState, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	u := m.Object
	resource, problem, err := a.findManifestResource(ctx, u)
	switch {
	case err != nil:
		return describeRefusal(err, m, a.secrets)
	case problem != "":
		return manifestState{waiting: problem}, nil
	}
	u = u.DeepCopy()
	switch {
	case !resource.Namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return manifestState{failed: "it cannot be encoded"}, nil // the error may quote values
	}
	answer := a.core.RESTClient().Patch(types.ApplyPatchType).
		AbsPath(buildObjectPath(u.GetAPIVersion(), resource, u.GetNamespace(), u.GetName())).
		Param("fieldManager", manifestFieldManager).Param("force", "true").
		SetHeader("Accept", "application/json").Body(body).Do(ctx)
	if err := answer.Error(); err != nil { // the words of the API server; those of Raw are the client's own
		return describeRefusal(err, m, a.secrets)
	}
	raw, err := answer.Raw()
	if err != nil {
		return manifestState{}, err
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(raw); err != nil {
		return manifestState{failed: "the cluster's answer cannot be decoded"}, nil // the error may quote values
	}
	return judgeManifest(stored, m, a.secrets), nil
}

// findManifestResource returns the resource of a manifest, or why the cluster has none.
func (a manifestApplier) findManifestResource(ctx context.Context, u *unstructured.Unstructured) (metav1.APIResource, string, error) {
	kind := u.GroupVersionKind()
	if found, known := a.resources[kind]; known {
		return found, "", nil
	}
	found, problem, err := a.findResource(ctx, u.GetAPIVersion(), u.GetKind())
	if err == nil && problem == "" {
		a.resources[kind] = found
	}
	return found, problem, err
}

// judgeManifest returns what the status of an applied object says.
func judgeManifest(stored *unstructured.Unstructured, m bootstrap.Manifest, secrets []string) manifestState {
	r, err := status.Compute(stored)
	if err != nil {
		return manifestState{waiting: "its status cannot be read"}
	}
	words := strings.ToLower(r.Status.String())
	if r.Message != "" && !m.Secret {
		words = scrubMessage(r.Message, secrets)
	}
	switch r.Status {
	case status.CurrentStatus:
		if m.RunsToEnd {
			return judgeRun(stored)
		}
		return manifestState{}
	case status.FailedStatus:
		return manifestState{failed: words, final: hasFailedForGood(stored)}
	default:
		return manifestState{waiting: words}
	}
}

// describeRefusal returns why the cluster has not applied a manifest. An error is one of the connection. The words
// of an API server may quote values: of a manifest that is secret, only the reason and the fields are shown.
func describeRefusal(err error, m bootstrap.Manifest, secrets []string) (manifestState, error) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return manifestState{}, err
	}
	s := answer.Status()
	switch {
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusTooManyRequests, s.Code == http.StatusServiceUnavailable, s.Code == http.StatusGatewayTimeout:
		return manifestState{}, err
	case s.Code == http.StatusConflict:
		return manifestState{waiting: "another writer changes it"}, nil
	case s.Code == http.StatusNotFound && isMissingNamespace(s):
		return manifestState{waiting: "its namespace does not exist"}, nil
	case m.Secret:
		return manifestState{failed: "the cluster refuses it: " + describeStatus(s) + "; its message is not shown, because the manifest is secret"}, nil
	default:
		return manifestState{failed: "the cluster refuses it: " + scrubMessage(s.Message, secrets)}, nil
	}
}

func isMissingNamespace(s metav1.Status) bool {
	return s.Details != nil && strings.EqualFold(s.Details.Kind, "namespaces") && s.Details.Group == ""
}

// fieldPath matches a path of fields without a quoted key or value.
var fieldPath = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*|\[[0-9]+\])*$`)

// describeStatus returns the reason of a refusal, and the fields that it is about, without their values.
func describeStatus(s metav1.Status) string {
	words := string(s.Reason)
	if words == "" || s.Reason == metav1.StatusReasonUnknown {
		words = fmt.Sprintf("status %d", s.Code)
	}
	if s.Details == nil {
		return words
	}
	var fields []string
	for _, cause := range s.Details.Causes {
		if fieldPath.MatchString(cause.Field) {
			fields = append(fields, fmt.Sprintf("%s at %s", cause.Type, cause.Field))
		}
	}
	if len(fields) == 0 {
		return words
	}
	return words + " (" + joinFirst(fields) + ")"
}

// scrubMessage returns the words of a cluster without secrets and line breaks, and cut.
func scrubMessage(message string, secrets []string) string {
	words := strings.Join(strings.Fields(redact.Text(message, secrets...)), " ")
	if cut := []rune(words); len(cut) > maxMessageLength {
		words = string(cut[:maxMessageLength]) + "…"
	}
	return strings.TrimRight(words, ".")
}
