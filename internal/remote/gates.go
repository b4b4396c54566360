package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/gate/expression"
)

const (
	apiServicesPath     = "/apis/apiregistration.k8s.io/v1/apiservices"
	systemNamespace     = "kube-system"
	tokenReviewsPath    = "/apis/authentication.k8s.io/v1/tokenreviews"
	tokenSeconds        = 600 // the shortest lifetime that an API server accepts
	systemDeployments   = "/apis/apps/v1/namespaces/" + systemNamespace + "/deployments"
	defaultAccount      = "default"
	maxNamed            = 3 // objects that an answer names
	defaultGateDNSImage = "docker.io/library/busybox:stable"
)

// CheckGates checks gates of the cluster whose admin kubeconfig is in the Secret, and returns their answers by
// name. run identifies the current run of the cluster, and the version of its gates: pods of others are deleted first. A
// cluster that does not answer fails its gates; an error is the hub's own. Answers contain no values of the cluster's
// objects, except their names.
func (c *Connector) CheckGates(ctx context.Context, secret types.NamespacedName, gates []v1alpha1.Gate, run string) (map[string]gate.Answer, error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil {
		return nil, err
	}
	if trouble == "" {
		trouble = a.deleteGatePods(ctx, run)
	}
	out := make(map[string]gate.Answer, len(gates))
	for _, g := range gates {
		if trouble != "" {
			out[g.Name] = failf("the cluster does not answer: %s", trouble)
			continue
		}
		answer, err := a.checkGate(ctx, g, run)
		if err != nil {
			answer = failf("the cluster does not answer: %s", DescribeFailure(err))
			if isTimeout(err) {
				trouble = DescribeFailure(err) // the other gates would time out, too
			}
		}
		out[g.Name] = answer
	}
	return out, nil
}

// DeleteGatePods deletes the pods of all gates in the cluster whose admin kubeconfig is in the Secret, or returns why it
// could not. An error is the hub's own.
func (c *Connector) DeleteGatePods(ctx context.Context, secret types.NamespacedName) (trouble string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return trouble, err
	}
	return a.deleteGatePods(ctx, ""), nil
}

func failf(format string, args ...any) gate.Answer {
	return gate.Answer{Message: fmt.Sprintf(format, args...)}
}

var passed = gate.Answer{Passed: true}

// checkGate checks one gate. An error is one of the connection, or of the API server.
func (sc *spokeClient) checkGate(ctx context.Context, g v1alpha1.Gate, run string) (gate.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch g.Type {
	case v1alpha1.GateNodesReady:
		return sc.checkNodes(ctx)
	case v1alpha1.GateSystemDeploymentsAvailable:
		return sc.checkSystemDeployments(ctx)
	case v1alpha1.GateAPIServicesAvailable:
		return sc.checkAPIServices(ctx)
	case v1alpha1.GateServiceAccountToken:
		return sc.checkServiceAccountToken(ctx)
	case v1alpha1.GateDNSAnswers, v1alpha1.GatePodRuns:
		return sc.checkPod(ctx, g, run)
	case v1alpha1.GateObject:
		return sc.checkObject(ctx, g.Object)
	default:
		return failf("hotspare does not know type %s", g.Type), nil
	}
}

func (sc *spokeClient) checkNodes(ctx context.Context) (gate.Answer, error) {
	nodes, err := sc.core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return gate.Answer{}, fmt.Errorf("listing nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return failf("the cluster has no node"), nil
	}
	var unready []string
	for i := range nodes.Items {
		if !nodeReadiness(&nodes.Items[i], metav1.MicroTime{}).Ready {
			unready = append(unready, nodes.Items[i].Name)
		}
	}
	return failIfAny("nodes are not ready", unready), nil
}

// failIfAny fails if there are names, and names the first ones.
func failIfAny(what string, names []string) gate.Answer {
	if len(names) == 0 {
		return passed
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return failf("%s: %s%s", what, strings.Join(names[:min(len(names), maxNamed)], ", "), more)
}

// readJSON reads a path of the API.
func (sc *spokeClient) readJSON(ctx context.Context, path string, into any) error {
	raw, err := sc.core.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

func (sc *spokeClient) checkSystemDeployments(ctx context.Context) (gate.Answer, error) {
	var list appsv1.DeploymentList
	if err := sc.readJSON(ctx, systemDeployments, &list); err != nil {
		return gate.Answer{}, err
	}
	var missing []string
	for _, d := range list.Items {
		current := d.Status.ObservedGeneration >= d.Generation
		available := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
		})
		if !current || !available {
			missing = append(missing, d.Name)
		}
	}
	return failIfAny("Deployments in namespace "+systemNamespace+" are not available", missing), nil
}

// apiServices contains the fields of an APIServiceList that are read: they do not justify a dependency on the
// module of the aggregator.
type apiServices struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

func (sc *spokeClient) checkAPIServices(ctx context.Context) (gate.Answer, error) {
	var list apiServices
	if err := sc.readJSON(ctx, apiServicesPath, &list); err != nil {
		return gate.Answer{}, err
	}
	var missing []string
	for _, s := range list.Items {
		if !slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" && c.Status == metav1.ConditionTrue }) {
			missing = append(missing, s.Metadata.Name)
		}
	}
	return failIfAny("APIServices are not available", missing), nil
}

// checkServiceAccountToken lets the cluster issue a token and review it.
func (sc *spokeClient) checkServiceAccountToken(ctx context.Context) (gate.Answer, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := sc.core.ServiceAccounts(metav1.NamespaceDefault).CreateToken(ctx, defaultAccount, request, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return failf("ServiceAccount %s does not exist in namespace %s", defaultAccount, metav1.NamespaceDefault), nil
	case err != nil:
		return gate.Answer{}, fmt.Errorf("requesting a token: %w", err)
	}
	review := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return gate.Answer{}, fmt.Errorf("encoding a TokenReview: %w", err)
	}
	raw, err := sc.core.RESTClient().Post().AbsPath(tokenReviewsPath).SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
	if err != nil {
		return gate.Answer{}, fmt.Errorf("reviewing a token: %w", err)
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return gate.Answer{}, fmt.Errorf("decoding a TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return failf("the cluster does not accept the token that it has issued"), nil
	}
	return passed, nil
}

// checkObject evaluates the expression of a gate.
func (sc *spokeClient) checkObject(ctx context.Context, o *v1alpha1.GateObjectCheck) (gate.Answer, error) {
	if o == nil {
		return failf("it names no object"), nil
	}
	program, err := expression.CompileCached(o.Expression)
	if err != nil {
		return failf("the expression is not valid: %s", err), nil
	}
	path, problem, err := sc.findObjectPath(ctx, o)
	if err != nil || problem != "" {
		return gate.Answer{Message: problem}, err
	}
	object := map[string]any{}
	err = sc.readJSON(ctx, path, &object)
	switch {
	case apierrors.IsNotFound(err):
		return failf("%s does not exist", describeObject(o)), nil
	case err != nil:
		return gate.Answer{}, err
	}
	ok, err := program.Eval(ctx, object)
	switch {
	case err != nil:
		return failf("%s: %s", describeObject(o), err), nil
	case ok:
		return passed, nil
	case o.Message != "":
		return failf("%s", o.Message), nil
	default:
		return failf("%s: it is not true that %s", describeObject(o), o.Expression), nil
	}
}

func describeObject(o *v1alpha1.GateObjectCheck) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// findObjectPath returns the path of an object in the API, or why there is none.
func (sc *spokeClient) findObjectPath(ctx context.Context, o *v1alpha1.GateObjectCheck) (path, problem string, err error) {
	served, problem, err := sc.findResource(ctx, o.APIVersion, o.Kind)
	switch {
	case err != nil || problem != "":
		return "", problem, err
	case served.Namespaced && o.Namespace == "":
		return "", fmt.Sprintf("kind %s has a namespace: set object.namespace", o.Kind), nil
	case !served.Namespaced && o.Namespace != "":
		return "", fmt.Sprintf("kind %s has no namespace: remove object.namespace", o.Kind), nil
	default:
		return buildObjectPath(o.APIVersion, served, o.Namespace, o.Name), "", nil
	}
}

// findResource returns the resource of a kind, or why the cluster has none.
func (sc *spokeClient) findResource(ctx context.Context, apiVersion, kind string) (found metav1.APIResource, problem string, err error) {
	var served metav1.APIResourceList
	err = sc.readJSON(ctx, groupVersionPath(apiVersion), &served)
	if apierrors.IsNotFound(err) {
		return found, "the cluster does not serve " + apiVersion, nil
	}
	if err != nil {
		return found, "", err
	}
	i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind && !strings.Contains(r.Name, "/") })
	if i < 0 {
		return found, fmt.Sprintf("the cluster does not serve kind %s of %s", kind, apiVersion), nil
	}
	return served.APIResources[i], "", nil
}

func groupVersionPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}

// buildObjectPath returns the path of an object. It ignores the namespace of a resource that has none.
func buildObjectPath(apiVersion string, r metav1.APIResource, namespace, name string) string {
	path := groupVersionPath(apiVersion)
	if r.Namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Name + "/" + name
}
