package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// Catalog finds recipes in images. A Job in the namespace of a pool reads each recipe once; its state
// Secret keeps the definition. The definition of the recipe that created a cluster is in the
// metadata.json of the cluster, so that destroy needs no other object.
type Catalog struct {
	*hub

	known sync.Mutex
	// canHibernate contains, by the name of a recipe, whether one that was read can stop its clusters.
	canHibernate map[string]bool
}

var _ runner.Recipes = (*Catalog)(nil)

const (
	describeLimit = 2 * time.Minute
	// retryDescribe is the time after which a recipe that could not be read is read again.
	retryDescribe = 5 * time.Minute
)

// FindRecipe returns the recipe that created the cluster, or the one in the image of its image set.
func (c *Catalog) FindRecipe(ctx context.Context, l runner.Lookup) (*recipe.Recipe, error) {
	limits, err := runner.ReadTimeouts(l.Platform.Timeouts)
	if err != nil {
		return nil, err
	}
	d, err := c.findDefinition(ctx, l)
	if err != nil {
		return nil, err
	}
	if l.ImageOverride != "" {
		d.Image = l.ImageOverride
	}
	r, err := recipe.LoadDefinition(d)
	if err != nil {
		return nil, fault.NewDenied("spec.platform.exec.recipe: %w", err)
	}
	c.known.Lock()
	defer c.known.Unlock()
	c.canHibernate[r.Name] = r.CanHibernate() || c.canHibernate[r.Name]
	return r.WithTimeouts(limits), nil
}

func (c *Catalog) findDefinition(ctx context.Context, l runner.Lookup) (recipe.Definition, error) {
	if l.Created != nil && l.Created.Definition != nil {
		return *l.Created.Definition, nil
	}
	q := newDescription(l.Cluster.Namespace, ownerReference(l.Cluster.Name, l.UID), l.Image, l.Platform.Recipe)
	q.pullSecret = l.PullSecret
	if l.PoolNamespace != "" && l.PoolNamespace != l.Cluster.Namespace {
		ofPool := q
		ofPool.state.Namespace = l.PoolNamespace
		if st, err := ofPool.store(c.client).ReadState(ctx); err == nil && isDescribed(st) {
			return decodeDefinition(ofPool, st)
		}
	}
	return c.describe(ctx, q)
}

// HibernationObstacle returns why clusters of a platform cannot hibernate. It is "" until a recipe with
// that name was read.
func (c *Catalog) HibernationObstacle(p hivev1.Platform) string {
	if p.Exec == nil {
		return ""
	}
	c.known.Lock()
	defer c.known.Unlock()
	if can, known := c.canHibernate[p.Exec.Recipe]; can || !known {
		return ""
	}
	return runner.DescribeObstacle(p.Exec.Recipe)
}

// CheckPool returns what the clusters of a pool lack, one text each, and the version of the recipe that
// they are created with; "" if it is unknown. image is the release image of the pool's image set.
func (c *Catalog) CheckPool(ctx context.Context, p *hivev1.ClusterPool, image string) (missing []string, version string) {
	exec := p.Spec.Platform.Exec
	if exec == nil || image == "" { // the pool reports that its image set does not exist
		return nil, ""
	}
	owner := metav1.OwnerReference{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterPool", Name: p.Name, UID: p.UID}
	q := newDescription(p.Namespace, owner, image, exec.Recipe)
	if ref := p.Spec.PullSecretRef; ref != nil {
		q.pullSecret = ref.Name
	}
	d, err := c.describe(ctx, q)
	if err != nil {
		return []string{fault.OneLine(err)}, ""
	}
	r, err := c.FindRecipe(ctx, runner.Lookup{Platform: exec, Created: &runner.ExecMetadata{Definition: &d}})
	if err == nil {
		_, err = runner.CompleteParameters(r, exec)
	}
	if err != nil {
		missing = append(missing, fault.OneLine(err))
	}
	return missing, describeVersion(d)
}

// describeVersion returns a text that changes when the recipe or its image changes.
func describeVersion(d recipe.Definition) string {
	_, digest, pinned := strings.Cut(d.Image, "@sha256:")
	if !pinned {
		digest = jobstate.HashFolder([]byte(d.Image))
	}
	return d.ContentVersion + "-" + digest[:min(len(digest), digestInVersion)]
}

// digestInVersion is the length of the part of an image's digest in a version.
const digestInVersion = 12

// newDescription returns the request to read a recipe from an image.
func newDescription(namespace string, owner metav1.OwnerReference, image, name string) request {
	return request{
		state: types.NamespacedName{Namespace: namespace, Name: stateName(name, "describe "+name+" "+image)},
		owner: owner, labels: map[string]string{hivev1.LabelSecretType: secretTypeState},
		verb: describe, input: []byte("{}"), hash: jobstate.HashFolder([]byte(image)), resumable: true,
		image: image, recipe: name, limit: describeLimit,
	}
}

// describe returns the definition of a recipe in an image. While a Job reads it, the error is fault.Wait
// and says what the Job waits for.
func (c *Catalog) describe(ctx context.Context, q request) (recipe.Definition, error) {
	if q.image == "" {
		return recipe.Definition{}, fault.NewDenied("the image with recipe %q is unknown: set spec.releaseImage of the ClusterImageSet that spec.imageSetRef names", q.recipe)
	}
	p, err := c.advance(ctx, q, "")
	switch {
	case err != nil:
		return recipe.Definition{}, err
	case p.waiting != nil:
		return recipe.Definition{}, p.waiting
	case !p.isDone():
		return recipe.Definition{}, &install.NotLaunchedError{Err: fault.NewWait(c.Poll, "Job %s reads recipe %q from image %s", q.jobName(p.token), q.recipe, q.image)}
	case p.state.Run.Phase == jobstate.Interrupted:
		return recipe.Definition{}, fault.NewWait(retryInterrupted, "reading recipe %q from image %s is repeated: %s", q.recipe, q.image, p.message)
	case p.state.Outcome.Result == recipe.Done:
		return c.pinImage(ctx, q, p)
	}
	problem := fault.NewDenied("spec.platform.exec.recipe: image %s: %s", q.image, strings.ReplaceAll(p.state.Outcome.Problem, "\n", "; "))
	if read, err := time.Parse(time.RFC3339Nano, p.state.Run.Heartbeat); err == nil && c.Clock.Since(read) < retryDescribe {
		return recipe.Definition{}, problem
	}
	return recipe.Definition{}, errors.Join(problem, c.recordReported(ctx, q, p)) // the next call reads it again
}

const retryInterrupted = 10 * time.Second

func isDescribed(st jobstate.State) bool {
	return st.Run.Verb == describe && st.Run.Phase == jobstate.Ended && st.Outcome.Result == recipe.Done
}

// decodeDefinition returns the definition in a state. The pod that has written it chooses neither the
// name nor the repository of the image.
func decodeDefinition(q request, st jobstate.State) (recipe.Definition, error) {
	var d recipe.Definition
	if err := json.Unmarshal(st.Answer, &d); err != nil {
		return d, fmt.Errorf("reading the definition of recipe %s in Secret %s: %w: delete the Secret", q.recipe, q.state.Name, err)
	}
	d.Name, d.Image = q.recipe, addDigest(q.image, d.Image)
	return d, nil
}

// pinImage adds the digest of the image that the Job has run to the definition, so that all programs of a
// cluster run in the same image even if its tag is moved.
func (c *Catalog) pinImage(ctx context.Context, q request, p progress) (recipe.Definition, error) {
	d, err := decodeDefinition(q, p.state)
	if err != nil || strings.Contains(d.Image, "@") {
		return d, err
	}
	seen, err := c.observeJob(ctx, q, p.token)
	if err != nil {
		return d, err
	}
	d.Image = addDigest(q.image, seen.ImageID)
	if !strings.Contains(d.Image, "@") {
		return d, nil // the container runtime does not report it
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return d, fmt.Errorf("encoding the definition of recipe %s: %w", q.recipe, err)
	}
	_, err = q.store(c.client).EditState(ctx, func(s *jobstate.State) error {
		s.Answer = raw
		return nil
	})
	return d, err
}

// digestPattern matches an image reference that ends with a digest.
var digestPattern = regexp.MustCompile(`@(sha256:[0-9a-f]{64})$`)

// addDigest returns an image reference with the digest in id, or unchanged if it has one, or if id has
// none. id is the ID of an image as a container runtime reports it.
func addDigest(image, id string) string {
	digest := digestPattern.FindStringSubmatch(id)
	if digest == nil || strings.Contains(image, "@") {
		return image
	}
	repository := image
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		repository = image[:tag]
	}
	return repository + "@" + digest[1]
}
