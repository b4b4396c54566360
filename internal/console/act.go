package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// A formAction performs the action of a form as the viewer. It returns a message for the viewer
// that describes the result. The page shows an error as it is.
type formAction func(ctx context.Context, v Viewer, r *http.Request) (string, error)

// formActions maps the path of each form to its action. The paths are below the path of the pool's
// page.
var formActions = map[string]formAction{
	"/pools/{namespace}/{name}/claim":     createClaim,
	"/pools/{namespace}/{name}/resize":    resizePool,
	"/pools/{namespace}/{name}/release":   releaseClaim,
	"/pools/{namespace}/{name}/hibernate": hibernateCluster,
	"/pools/{namespace}/{name}/resume":    resumeCluster,
}

// formTimeout bounds how long the action of a form may take.
const formTimeout = 20 * time.Second

// handleForm performs a form's action and redirects to the pool's page, which shows the result.
func (s *Server) handleForm(do formAction) func(http.ResponseWriter, *http.Request, *viewerSession) {
	return func(w http.ResponseWriter, r *http.Request, one *viewerSession) {
		if !s.checkCSRFToken(w, r, one) {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), formTimeout)
		defer cancel()
		said, err := do(ctx, one.Viewer, r)
		if apierrors.IsUnauthorized(err) {
			err = userclient.ErrUnknown
		}
		if errors.Is(err, userclient.ErrUnknown) {
			s.serveError(w, r, one, err)
			return
		}
		m := session.Message{Text: said}
		if err != nil {
			m = session.Message{Text: describeHubError(err), Failed: true}
		}
		s.sessions.AddMessage(one, m)
		http.Redirect(w, r, poolPagePath(r), http.StatusSeeOther)
	}
}

// poolPagePath returns the path of the pool's page that contains the form.
func poolPagePath(r *http.Request) string {
	return localPath(r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')]) + querySuffix(r)
}

func querySuffix(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return "?" + r.URL.RawQuery
}

// describeHubError returns the text of a hub's error, followed by what the viewer can do about it.
func describeHubError(err error) string {
	text := err.Error()
	switch {
	case apierrors.IsForbidden(err):
		return text + ". Ask an administrator of the hub for permission."
	case apierrors.IsConflict(err):
		return text + ". Somebody else changed it in the meantime: reload the page and try again."
	case errors.Is(err, context.DeadlineExceeded):
		return text + ". The result is unknown: reload the page to check."
	default:
		return text
	}
}

// createClaim creates a claim on a pool.
func createClaim(ctx context.Context, v Viewer, r *http.Request) (string, error) {
	pool := r.PathValue("name")
	name := strings.TrimSpace(r.PostFormValue("claim"))
	if name == "" {
		name = pool + "-" + rand.String(5)
	}
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.PathValue("namespace"), Name: name},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
	}
	if text := strings.TrimSpace(r.PostFormValue("lifetime")); text != "" {
		lifetime := hivev1.Duration(text)
		if d, err := lifetime.Parse(); err != nil || d <= 0 {
			return "", fmt.Errorf("lifetime %q is not a duration: enter one such as 8h or 90m", text)
		}
		c.Spec.Lifetime = &lifetime
	}
	if text := strings.TrimSpace(r.PostFormValue("priority")); text != "" {
		if _, err := hivev1.ParsePriority(text); err != nil {
			return "", fmt.Errorf("priority %w: enter one such as 30, or none", err)
		}
		c.Annotations = map[string]string{hivev1.AnnotationPriority: text}
	}
	err := v.Create(ctx, c)
	switch {
	case apierrors.IsAlreadyExists(err):
		return "", fmt.Errorf("namespace %s already has a claim %q: choose another name", c.Namespace, name)
	case err != nil:
		return "", fmt.Errorf("claiming: %w", err)
	}
	return "Claim " + name + " created.", nil
}

// releaseClaim deletes a claim of the pool.
func releaseClaim(ctx context.Context, v Viewer, r *http.Request) (string, error) {
	c, err := getFormClaim(ctx, v, r)
	if err != nil {
		return "", err
	}
	// The UID protects a claim that was created under the same name since the page was rendered.
	if err := v.Delete(ctx, c, client.Preconditions{UID: &c.UID}); err != nil {
		return "", fmt.Errorf("releasing claim %s: %w", c.Name, err)
	}
	return "Claim " + c.Name + " released.", nil
}

// getFormClaim reads the claim that a form names. It returns an error if the claim does not belong
// to the pool.
func getFormClaim(ctx context.Context, v Viewer, r *http.Request) (*hivev1.ClusterClaim, error) {
	c := &hivev1.ClusterClaim{}
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PostFormValue("claim")}
	err := v.Get(ctx, key, c)
	switch {
	case apierrors.IsNotFound(err), err == nil && c.Spec.ClusterPoolName != r.PathValue("name"):
		return nil, fmt.Errorf("pool %s no longer has a claim %q", r.PathValue("name"), key.Name)
	case err != nil:
		return nil, fmt.Errorf("reading claim %s: %w", key.Name, err)
	}
	return c, nil
}

// resizePool changes the size and the running count of a pool. It writes only the fields that the
// form changed.
func resizePool(ctx context.Context, v Viewer, r *http.Request) (string, error) {
	p := &hivev1.ClusterPool{}
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if err := v.Get(ctx, key, p); err != nil {
		return "", fmt.Errorf("reading pool %s: %w", key.Name, err)
	}
	before := p.DeepCopy()
	for _, field := range []struct {
		name, words string
		into        *int32
	}{
		{"size", "the number of spare clusters", &p.Spec.Size},
		{"running", "the number of running clusters", &p.Spec.RunningCount},
	} {
		text := strings.TrimSpace(r.PostFormValue(field.name))
		if text == r.PostFormValue(field.name+"-was") {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return "", fmt.Errorf("%s is %q: enter a number, 0 or more", field.words, text)
		}
		*field.into = int32(n)
	}
	if before.Spec.Size == p.Spec.Size && before.Spec.RunningCount == p.Spec.RunningCount {
		return "No changes.", nil
	}
	if err := v.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("resizing pool %s: %w", p.Name, err)
	}
	return fmt.Sprintf("Pool %s keeps %s, %d of them running.", p.Name, page.FormatCount(int(p.Spec.Size), "spare cluster"), min(p.Spec.RunningCount, p.Spec.Size)), nil
}

func hibernateCluster(ctx context.Context, v Viewer, r *http.Request) (string, error) {
	return setPowerState(ctx, v, r, hivev1.PowerHibernating, "Cluster %s is hibernating.")
}

func resumeCluster(ctx context.Context, v Viewer, r *http.Request) (string, error) {
	return setPowerState(ctx, v, r, hivev1.PowerRunning, "Cluster %s is resuming.")
}

// setPowerState sets the power state of a claim's cluster. It never touches spare clusters, because
// their pool controls their power state.
func setPowerState(ctx context.Context, v Viewer, r *http.Request, want hivev1.PowerState, said string) (string, error) {
	c, err := getFormClaim(ctx, v, r)
	if err != nil {
		return "", err
	}
	if c.Spec.Namespace == "" {
		return "", fmt.Errorf("claim %s has no cluster yet", c.Name)
	}
	cd := &hivev1.ClusterDeployment{}
	if err := v.Get(ctx, client.ObjectKey{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, cd); err != nil {
		return "", fmt.Errorf("reading cluster %s: %w", c.Spec.Namespace, err)
	}
	if clusterstate.PoolReference(cd).ClaimName != c.Name {
		return "", fmt.Errorf("cluster %s no longer belongs to claim %s", cd.Name, c.Name)
	}
	before := cd.DeepCopy()
	cd.Spec.PowerState = want
	if want == hivev1.PowerHibernating {
		delete(cd.Annotations, hivev1.AnnotationInactivity) // a connection does not end what a person wants
	}
	if err := v.Patch(ctx, cd, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("setting the power state of cluster %s: %w", cd.Name, err)
	}
	return fmt.Sprintf(said, cd.Name), nil
}
