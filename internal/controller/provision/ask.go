package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/ownership"
	"hotspare.io/hotspare/internal/provision"
)

// askLater is when an executor that is too busy, and does not say until when, is asked again.
const askLater = time.Minute

// askInstall begins the attempt, or asks how far it is.
func (p *pass) askInstall(ctx context.Context, s provision.Step) error {
	md, err := p.metadata(ctx, s.InfraID)
	if err == nil {
		p.result, err = p.executor().Install(ctx, p.requestFor(s.Attempt), md)
	}
	answer, err := p.answer(p.result, err)
	p.install = waiting(answer)
	return err
}

// askDestroy begins to destroy what an infraID marks, or asks how far that is.
func (p *pass) askDestroy(ctx context.Context, s provision.Step) error {
	if err := p.observeLeftRelease(ctx); err != nil {
		return err
	}
	var result install.Result
	md, err := p.metadata(ctx, s.InfraID)
	if err == nil {
		result, err = p.executor().Destroy(ctx, p.request.Place, md)
	}
	if fault.Of(err) == fault.Gone {
		result, err = install.Result{Phase: install.Succeeded}, nil
	}
	p.destroy[s.InfraID], err = p.answer(result, err)
	return err
}

// theInstallWaits begins what is said of one.
const theInstallWaits = "The install waits: "

// waiting says of an answer that it is the install which waits.
func waiting(a provision.Answer) *provision.Answer {
	if a.Outcome == provision.Waiting {
		a.Message = theInstallWaits + a.Message
	}
	return &a
}

func (p *pass) requestFor(attempt int) install.Request {
	req := p.request
	req.Attempt, req.Name = attempt, provision.AttemptName(p.cluster.Name, p.cluster.UID, attempt)
	return req
}

// answer turns what an executor returned into what a decision needs. Errors
// that say what to do about them are answers; others are errors.
func (p *pass) answer(res install.Result, err error) (provision.Answer, error) {
	switch fault.Of(err) {
	case fault.Wait, fault.Capacity:
		return provision.Answer{
			Outcome: provision.Waiting,
			Message: p.redact(err.Error()),
			After:   cmp.Or(fault.After(err), askLater),

			NotLaunched:  errors.As(err, new(*install.NotLaunchedError)),
			Unauthorized: errors.As(err, new(*install.UnauthorizedError)),
		}, nil
	case fault.Denied:
		return provision.Answer{Outcome: provision.Refused, Message: p.redact(err.Error())}, nil
	}
	if err != nil {
		return provision.Answer{}, err
	}
	switch res.Phase {
	case install.Succeeded:
		return provision.Answer{Outcome: provision.Succeeded}, nil
	case install.Failed:
		return provision.Answer{
			Outcome: provision.Failed,
			Reason:  cmp.Or(res.Reason, unknownError),
			Message: cmp.Or(p.redact(lastLine(p.redact(res.Log))), noReason),
		}, nil
	}
	return provision.Answer{Outcome: provision.Running}, nil
}

// redact takes the secrets of the install-config out of a text for people.
func (p *pass) redact(text string) string { return config.Redact(text, p.request.Config) }

// logged is a line of an installer's log. What it says matters, not when, nor how loud.
var logged = regexp.MustCompile(`^(?:time=\S+ )?level=\S+ msg=("(?:[^"\\]|\\.)*")$`)

// maxLine bounds how much of a log is repeated in a condition.
const maxLine = 500

// lastLine is what the last line of a log says that says something.
func lastLine(log string) string {
	log = strings.TrimSpace(log)
	line := strings.TrimSpace(log[strings.LastIndex(log, "\n")+1:])
	if parts := logged.FindStringSubmatch(line); parts != nil {
		if said, err := strconv.Unquote(parts[1]); err == nil {
			line = strings.Join(strings.Fields(said), " ")
		}
	}
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}

// metadata returns what is recorded of an infraID: in its ClusterProvision, or in the
// Secret, or no more than the names that the cluster itself records. The error is
// fault.Denied if the infraID is that of another cluster.
func (p *pass) metadata(ctx context.Context, id string) (install.Metadata, error) {
	if err := ownership.Confirm(ctx, p.Client, p.cluster, id); err != nil {
		return install.Metadata{}, err
	}
	if cp := p.attempt(id); cp != nil {
		return recorded(cp), nil
	}
	md := install.Metadata{InfraID: id}
	names := p.cluster.Spec.ClusterMetadata
	if names == nil || names.InfraID != id {
		return md, nil
	}
	md.ClusterID = names.ClusterID
	if names.MetadataJSONSecretRef == nil {
		return md, nil
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: p.cluster.Namespace, Name: names.MetadataJSONSecretRef.Name}
	if err := p.Live.Get(ctx, key, &secret); err != nil {
		return md, client.IgnoreNotFound(err)
	}
	if raw := secret.Data[hivev1.SecretKeyMetadata]; tellsOf(raw, id) {
		md.Raw = raw
	}
	return md, nil
}

func recorded(cp *hivev1.ClusterProvision) install.Metadata {
	md := install.Metadata{InfraID: *cp.Spec.InfraID}
	if cp.Spec.ClusterID != nil {
		md.ClusterID = *cp.Spec.ClusterID
	}
	if cp.Spec.MetadataJSON != nil {
		md.Raw = cp.Spec.MetadataJSON.Raw
	}
	return md
}

// tellsOf reports whether a metadata.json is that of an infraID: the Secret is
// written before the cluster names its attempt, so it may be ahead.
func tellsOf(raw []byte, id string) bool {
	var md struct {
		InfraID string `json:"infraID"`
	}
	return json.Unmarshal(raw, &md) == nil && md.InfraID == id
}
