// Package bootstrap decides which step of a pool's ClusterBootstrap a spare cluster takes next, and when all are
// done.
//
// It is pure: a snapshot has the steps, the record of the cluster and the outcome of an attempt at the current
// step, and the plan has the next record and the condition Bootstrapped. A cluster takes all steps of one version,
// in their order; the version and the step are recorded before the attempt, so that a process that is killed
// anywhere continues where it was.
package bootstrap

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// defaultTimeout is how long a step may take if its timeout is not set.
const defaultTimeout = 10 * time.Minute

// Unresolved is the version of steps that are not known. No cluster has taken them.
const Unresolved = "unresolved"

// A Requirement is the steps that a pool's spare clusters must take. The zero value requires none.
type Requirement struct {
	// Version identifies the steps and what they refer to; empty if there are none, Unresolved with a Problem.
	Version string
	Steps   []Step
	// Problem explains why the steps are not known; empty if they are.
	Problem string
	// Unwatched is set if the steps refer to objects whose changes nobody reports.
	Unwatched bool
}

// A Step is a step with everything that it needs: manifests to apply, a Job to run if Job is not nil, or a chart to
// install if Chart is not nil.
type Step struct {
	Name      string
	Timeout   time.Duration
	Manifests []Manifest
	Job       *Job
	Chart     *Chart
}

// A Manifest is an object to apply. Secret is set if nothing but its kind, namespace and name may be shown. RunsToEnd
// is set if a Job or Pod is current only after it has succeeded.
type Manifest struct {
	Object    *unstructured.Unstructured
	Secret    bool
	RunsToEnd bool
}

// A Reference is a ConfigMap or Secret that steps refer to, in the namespace of the ClusterBootstrap.
type Reference struct {
	Secret bool
	Name   string
}

func (r Reference) String() string {
	if r.Secret {
		return "Secret " + r.Name
	}
	return "ConfigMap " + r.Name
}

// A Source is the content of an existing ConfigMap or Secret. Binary is the binaryData of a ConfigMap.
type Source struct {
	UID    string
	Data   map[string]string
	Binary map[string]string `json:"-"`
}

// ListReferences returns the objects that steps refer to, without duplicates.
func ListReferences(steps []v1alpha1.BootstrapStep) []Reference {
	var out []Reference
	seen := map[Reference]bool{}
	for _, s := range steps {
		for _, f := range listSources(s) {
			if r, ok := referenceOf(f); ok && !seen[r] {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// listSources returns the objects that a step refers to.
func listSources(s v1alpha1.BootstrapStep) []v1alpha1.ManifestSource {
	var out []v1alpha1.ManifestSource
	if s.Manifests != nil {
		out = append(out, s.Manifests.From...)
	}
	if s.Job != nil {
		out = append(out, s.Job.EnvFrom...)
	}
	if s.Chart != nil {
		out = append(out, s.Chart.ArchiveFrom)
		out = append(out, s.Chart.ValuesFrom...)
	}
	return out
}

func referenceOf(f v1alpha1.ManifestSource) (Reference, bool) {
	switch {
	case f.ConfigMapRef != nil:
		return Reference{Name: f.ConfigMapRef.Name}, true
	case f.SecretRef != nil:
		return Reference{Secret: true, Name: f.SecretRef.Name}, true
	default:
		return Reference{}, false
	}
}

// NewUnresolved returns the Requirement of a pool whose steps are not known.
func NewUnresolved(problem string) Requirement {
	return Requirement{Version: Unresolved, Problem: problem}
}

// NewRequirement returns what the steps of b require. sources are the existing ones among its references.
func NewRequirement(b *v1alpha1.ClusterBootstrap, sources map[Reference]Source) Requirement {
	if len(b.Spec.Steps) == 0 {
		return Requirement{}
	}
	references := ListReferences(b.Spec.Steps)
	out := Requirement{Unwatched: len(references) > 0}
	fail := func(format string, args ...any) Requirement {
		r := NewUnresolved(fmt.Sprintf(format, args...))
		r.Unwatched = out.Unwatched
		return r
	}
	for _, r := range references {
		if _, found := sources[r]; !found {
			return fail("%s of ClusterBootstrap %s does not exist: create it", r, b.Name)
		}
	}
	var err error
	if out.Version, err = hashSteps(b.Spec.Steps, references, sources); err != nil {
		return fail("ClusterBootstrap %s cannot be used: %s", b.Name, err)
	}
	for _, s := range b.Spec.Steps {
		step := Step{Name: s.Name, Timeout: parseTimeout(s.Timeout)}
		if step.Manifests, err = readManifests(s.Manifests, sources); err != nil {
			return fail("step %s of ClusterBootstrap %s cannot be used: %s", s.Name, b.Name, err)
		}
		if s.Job != nil {
			step.Job = newJob(s.Name, *s.Job, out.Version, sources)
		}
		if s.Chart != nil {
			if step.Chart, err = newChart(s.Name, *s.Chart, out.Version, sources); err != nil {
				return fail("step %s of ClusterBootstrap %s cannot be used: %s", s.Name, b.Name, err)
			}
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

// parseTimeout returns a timeout of the spec, or the default if it is not set, or not valid.
func parseTimeout(d hivev1.Duration) time.Duration {
	v, err := d.Parse()
	if err != nil || v <= 0 {
		return defaultTimeout
	}
	return v
}

// IsFirst reports whether a step is the first one.
func (r Requirement) IsFirst(s Step) bool { return s.Name == r.Steps[0].Name }

// IsLast reports whether a step is the last one.
func (r Requirement) IsLast(s Step) bool { return s.Name == r.Steps[len(r.Steps)-1].Name }

// SecretTexts returns the values in the manifests of which nothing may be shown. A message of the cluster is
// searched for them.
func (r Requirement) SecretTexts() []string {
	var out []string
	for _, s := range r.Steps {
		manifests := s.Manifests
		if s.Job != nil {
			manifests = s.Job.Manifests
		}
		for _, m := range manifests {
			if m.Secret {
				out = appendTexts(out, m.Object.Object)
			}
		}
		if s.Chart != nil && s.Chart.Secret {
			out = appendTexts(out, s.Chart.Values)
		}
	}
	return out
}
