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

// defaultRetryDelay is the delay before a busy executor is asked again, if it does not name one.
const defaultRetryDelay = time.Minute

// requestInstall starts the attempt, or asks for its progress.
func (p *pass) requestInstall(ctx context.Context, s provision.Step) error {
	md, err := p.readMetadata(ctx, s.InfraID)
	if err == nil {
		p.result, err = p.clusterExecutor().Install(ctx, p.attemptRequest(s.Attempt), md)
	}
	answer, err := p.toAnswer(p.result, err)
	p.install = withInstallWaitsPrefix(answer)
	return err
}

// requestDestroy starts to destroy what an infraID marks, or asks for its progress.
func (p *pass) requestDestroy(ctx context.Context, s provision.Step) error {
	if err := p.observeReleaseForDestroy(ctx); err != nil {
		return err
	}
	var result install.Result
	md, err := p.readMetadata(ctx, s.InfraID)
	if err == nil {
		result, err = p.clusterExecutor().Destroy(ctx, p.request.ClusterTarget, md)
	}
	if fault.KindOf(err) == fault.Gone {
		result, err = install.Result{Phase: install.Succeeded}, nil
	}
	p.destroy[s.InfraID], err = p.toAnswer(result, err)
	return err
}

// installWaitsPrefix is the prefix of the messages of a waiting install.
const installWaitsPrefix = "The install waits: "

// withInstallWaitsPrefix adds installWaitsPrefix to the message of an answer.
func withInstallWaitsPrefix(a provision.Answer) *provision.Answer {
	if a.Outcome == provision.Waiting && !a.PrepareFailed {
		a.Message = installWaitsPrefix + a.Message
	}
	return &a
}

func (p *pass) attemptRequest(attempt int) install.Request {
	req := p.request
	req.Attempt, req.Name = attempt, provision.AttemptName(p.cluster.Name, p.cluster.UID, attempt)
	return req
}

// toAnswer converts an executor's result into an answer for the decision. Errors that say what to
// do about them become answers; others are returned.
func (p *pass) toAnswer(res install.Result, err error) (provision.Answer, error) {
	switch fault.KindOf(err) {
	case fault.Wait, fault.Capacity:
		return provision.Answer{
			Outcome: provision.Waiting,
			Message: p.redactSecrets(err.Error()),
			After:   cmp.Or(fault.RetryAfter(err), defaultRetryDelay),

			PrepareFailed: errors.As(err, new(*install.PrepareFailedError)),
			NotLaunched:   errors.As(err, new(*install.NotLaunchedError)),
			Unauthorized:  errors.As(err, new(*install.UnauthorizedError)),
		}, nil
	case fault.Denied:
		return provision.Answer{Outcome: provision.Refused, Message: p.redactSecrets(err.Error())}, nil
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
			Message: cmp.Or(p.redactSecrets(lastLogLine(p.redactSecrets(res.Log))), noReasonMessage),
		}, nil
	}
	return provision.Answer{Outcome: provision.Running}, nil
}

// redactSecrets removes the secrets of the install-config from a text for people.
func (p *pass) redactSecrets(text string) string { return config.Redact(text, p.request.Config) }

// installerLogLine matches a line of an installer's log. It captures the message and drops the
// time and the level.
var installerLogLine = regexp.MustCompile(`^(?:time=\S+ )?level=\S+ msg=("(?:[^"\\]|\\.)*")$`)

// maxMessageLength limits how much of a log is repeated in a condition.
const maxMessageLength = 500

// lastLogLine returns the message of the last line of a log that has one.
func lastLogLine(log string) string {
	log = strings.TrimSpace(log)
	line := strings.TrimSpace(log[strings.LastIndex(log, "\n")+1:])
	if parts := installerLogLine.FindStringSubmatch(line); parts != nil {
		if said, err := strconv.Unquote(parts[1]); err == nil {
			line = strings.Join(strings.Fields(said), " ")
		}
	}
	if len(line) > maxMessageLength {
		line = strings.ToValidUTF8(line[:maxMessageLength], "") + "…"
	}
	return line
}

// readMetadata returns the recorded metadata of an infraID: from its ClusterProvision, or from
// the Secret, or only the names that the cluster itself records. The error is fault.Denied if the
// infraID belongs to another cluster.
func (p *pass) readMetadata(ctx context.Context, id string) (install.Metadata, error) {
	if err := ownership.ConfirmOwner(ctx, p.Client, p.cluster, id); err != nil {
		return install.Metadata{}, err
	}
	if cp := p.attemptByInfraID(id); cp != nil {
		return recordedMetadata(cp), nil
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
	if raw := secret.Data[hivev1.SecretKeyMetadata]; isMetadataOf(raw, id) {
		md.Raw = raw
	}
	return md, nil
}

func recordedMetadata(cp *hivev1.ClusterProvision) install.Metadata {
	md := install.Metadata{InfraID: *cp.Spec.InfraID}
	if cp.Spec.ClusterID != nil {
		md.ClusterID = *cp.Spec.ClusterID
	}
	if cp.Spec.MetadataJSON != nil {
		md.Raw = cp.Spec.MetadataJSON.Raw
	}
	return md
}

// isMetadataOf reports whether a metadata.json belongs to an infraID. The Secret is written
// before the cluster names its attempt, so it may be newer.
func isMetadataOf(raw []byte, id string) bool {
	var md struct {
		InfraID string `json:"infraID"`
	}
	return json.Unmarshal(raw, &md) == nil && md.InfraID == id
}
