package dataplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(noon.Add(-d))) }

// outline returns a plan in one line: steps, phase, and why it is not ready.
func outline(p dataplane.Plan) string {
	var steps []string
	for _, s := range p.Steps {
		steps = append(steps, s.String())
	}
	reason := ""
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c != nil {
		reason = c.Reason
	}
	return fmt.Sprintf("%s | %s %s", strings.Join(steps, ", "), p.Status.Phase, reason)
}

type edit = func(*dataplane.Snapshot)

// seen returns a new data plane in a region with two pools.
func seen(edits ...edit) dataplane.Snapshot {
	s := dataplane.Snapshot{
		Now: noon,
		Plane: &v1alpha1.DataPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "p", UID: "u", CreationTimestamp: *ago(0), Finalizers: []string{v1alpha1.FinalizerDataPlane}},
			Spec:       v1alpha1.DataPlaneSpec{Provider: "aws", Region: "r", InstanceTypes: []string{"developer"}, Ownership: v1alpha1.Managed, DeletionPolicy: v1alpha1.DeletionDelete},
		},
		Region: &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fr"}},
		Hosts:  true,
		Types: map[string]*v1alpha1.InstanceType{"developer": {
			ObjectMeta: metav1.ObjectMeta{Name: "developer"},
			Spec: v1alpha1.InstanceTypeSpec{
				UnitsPerNode: ptr.To(resource.MustParse("10")), Sizes: []v1alpha1.InstanceSize{{Name: "x1", Units: 1, Capacity: &v1alpha1.KafkaCapacity{MaxPartitions: 7}}},
				NodePools: []v1alpha1.NodePool{{Platform: "aws", MachineType: "m5", MaxNodes: 3}},
			},
		}},
		Pools: map[string]*hivev1.ClusterPool{"a": clusterPool("a"), "b": clusterPool("b")},
	}
	s.Region.Spec = v1alpha1.FleetRegionSpec{
		Provider: "aws", Region: "r", DefaultNodePool: v1alpha1.DefaultNodePool{MinNodes: 6, MaxNodes: 18},
		ClusterSource: v1alpha1.ClusterSource{Claim: &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{
			{PoolRef: v1alpha1.PoolReference{Name: "a"}}, {PoolRef: v1alpha1.PoolReference{Name: "b"}}, {PoolRef: v1alpha1.PoolReference{Name: "wide"}, MultiZone: true},
		}}},
		InstanceTypes: []v1alpha1.RegionType{{Name: "developer"}},
	}
	for _, e := range edits {
		e(&s)
	}
	return s
}

func clusterPool(name string) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
}

func phase(p v1alpha1.DataPlanePhase) edit {
	return func(s *dataplane.Snapshot) { s.Plane.Status.Phase = p }
}

func registered(s *dataplane.Snapshot) {
	s.Plane.Spec.Ownership = v1alpha1.Registered
	s.Plane.Spec.ClusterRef = &v1alpha1.ClusterReference{KubeconfigSecret: &v1alpha1.NameReference{Name: "k"}}
	s.Kubeconfig = true
}

func cold(s *dataplane.Snapshot) {
	s.Region.Spec.ClusterSource = v1alpha1.ClusterSource{Deployment: &v1alpha1.DeploymentSource{Template: v1alpha1.DeploymentTemplate{BaseDomain: "d", Platform: runtime.RawExtension{Raw: []byte(`{"aws":{}}`)}}}}
}

func template(change func(*v1alpha1.DeploymentTemplate)) edit {
	return func(s *dataplane.Snapshot) { change(&s.Region.Spec.ClusterSource.Deployment.Template) }
}

// The admission policies read the keys of a platform as they are written: so must the cluster that is made of it.
func TestThePlatformOfATemplateIsReadAsThePoliciesReadIt(t *testing.T) {
	for _, platform := range []string{`{"Exec":{"recipe":"terraform"}}`, `{"EXEC":{"recipe":"terraform"}}`, `{"CAPI":{}}`, `{"capi":{"classRef":{"name":"q","Namespace":"other"}}}`} {
		p := dataplane.Decide(seen(cold, template(func(t *v1alpha1.DeploymentTemplate) { t.Platform = runtime.RawExtension{Raw: []byte(platform)} })))
		for _, st := range p.Steps {
			if st.Cluster == nil {
				continue
			}
			got := st.Cluster.Spec.Platform
			if got.Exec != nil || got.CAPI != nil && (strings.Contains(platform, "CAPI") || got.CAPI.ClassRef != nil && got.CAPI.ClassRef.Namespace != "") {
				t.Errorf("%s becomes %+v", platform, got)
			}
		}
		if len(p.Steps) == 0 {
			t.Errorf("%s: no cluster is made", platform)
		}
	}
}

// A user with write access to FleetRegions has clusters created with the rights of the manager:
// only the listed fields reach them.
func TestWhatATemplateSets(t *testing.T) {
	raw := &runtime.RawExtension{Raw: []byte(`{"name":"x"}`)}
	for name, change := range map[string]func(*v1alpha1.DeploymentTemplate){
		"installed":         func(t *v1alpha1.DeploymentTemplate) { t.Installed = true },
		"clusterName":       func(t *v1alpha1.DeploymentTemplate) { t.ClusterName = "other" },
		"clusterMetadata":   func(t *v1alpha1.DeploymentTemplate) { t.ClusterMetadata = raw },
		"clusterPoolRef":    func(t *v1alpha1.DeploymentTemplate) { t.ClusterPoolRef = raw },
		"clusterInstallRef": func(t *v1alpha1.DeploymentTemplate) { t.ClusterInstallRef = raw },
		"powerState":        func(t *v1alpha1.DeploymentTemplate) { t.PowerState = "Hibernating" },
		"hibernateAfter":    func(t *v1alpha1.DeploymentTemplate) { t.HibernateAfter = "1h" },
		"preserveOnDelete":  func(t *v1alpha1.DeploymentTemplate) { t.PreserveOnDelete = true },
		"releaseImage": func(t *v1alpha1.DeploymentTemplate) {
			t.Provisioning = &v1alpha1.TemplateProvisioning{ReleaseImage: "x"}
		},
		"installerImage": func(t *v1alpha1.DeploymentTemplate) {
			t.Provisioning = &v1alpha1.TemplateProvisioning{InstallerImageOverride: "x"}
		},
		"installerEnv": func(t *v1alpha1.DeploymentTemplate) {
			t.Provisioning = &v1alpha1.TemplateProvisioning{InstallerEnv: []runtime.RawExtension{*raw}}
		},
		"customizationRef": func(t *v1alpha1.DeploymentTemplate) {
			t.Provisioning = &v1alpha1.TemplateProvisioning{CustomizationRef: raw}
		},
	} {
		p := dataplane.Decide(seen(cold, template(change)))
		for _, st := range p.Steps {
			if st.Cluster != nil {
				t.Errorf("%s: a cluster is made: %+v", name, st.Cluster.Spec)
			}
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c == nil || !strings.Contains(c.Message, "sets fields that it must not") {
			t.Errorf("%s: it says %+v", name, c)
		}
	}
	s := seen(cold, template(func(t *v1alpha1.DeploymentTemplate) {
		t.PullSecretRef, t.InstallAttemptsLimit = &v1alpha1.NameReference{Name: "pull"}, ptr.To[int32](2)
		t.Provisioning = &v1alpha1.TemplateProvisioning{ImageSetRef: &v1alpha1.NameReference{Name: "image"}, InstallConfigSecretRef: &v1alpha1.NameReference{Name: "config"}}
	}))
	for _, st := range dataplane.Decide(s).Steps {
		if st.Cluster == nil {
			continue
		}
		want := hivev1.ClusterDeploymentSpec{
			ClusterName: "p", BaseDomain: "d", Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{}`)}},
			PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, InstallAttemptsLimit: ptr.To[int32](2),
			Provisioning: &hivev1.Provisioning{
				ImageSetRef: &hivev1.ClusterImageSetReference{Name: "image"}, InstallConfigSecretRef: &corev1.LocalObjectReference{Name: "config"},
			},
		}
		if diff := cmp.Diff(want, st.Cluster.Spec); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("no cluster is made")
}

func TestADataPlaneSaysWhyItsClaimIsHeld(t *testing.T) {
	s := seen(claimed, phase("Provisioning"))
	s.Claim.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionFalse, Reason: hivev1.ReasonNotPermitted, Message: "Why"}}
	p := dataplane.Decide(s)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c == nil || c.Message != "ClusterClaim p is waiting to be admitted: Why." {
		t.Errorf("it says %+v", c)
	}
}

var mine = map[string]string{v1alpha1.AnnotationDataPlane: "u"}

// claimed adds a waiting claim.
func claimed(s *dataplane.Snapshot) {
	s.Plane.Spec.ClusterRef = &v1alpha1.ClusterReference{Claim: &v1alpha1.NameReference{Name: "p"}}
	s.Claim = &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "p", UID: "c", Annotations: mine}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "a"}}
	pending(hivev1.ReasonNoClusters)(s)
}

func pending(reason string) edit {
	return func(s *dataplane.Snapshot) {
		s.Claim.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimPending, Status: corev1.ConditionTrue, Reason: reason, Message: "Words"}}
	}
}

// up adds a running cluster, of a claim.
func up(s *dataplane.Snapshot) {
	claimed(s)
	s.Claim.Spec.Namespace = "a-1"
	s.Claim.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimClusterRunning, Status: corev1.ConditionTrue}}
	s.Cluster = &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a-1", Name: "a-1", UID: "cd"}}
	s.Cluster.Spec = hivev1.ClusterDeploymentSpec{
		Installed: true, Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{}`)}},
		ClusterMetadata: &hivev1.ClusterMetadata{InfraID: "x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "admin"}},
	}
	s.Cluster.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterReady, Status: corev1.ConditionTrue}}
}

// installing adds a cluster that is being installed.
func installing(s *dataplane.Snapshot) {
	cold(s)
	up(s)
	s.Claim = nil
	s.Plane.Spec.ClusterRef = &v1alpha1.ClusterReference{Deployment: &v1alpha1.NameReference{Name: "p"}}
	s.Cluster.Namespace, s.Cluster.Name, s.Cluster.Annotations, s.Cluster.Spec.Installed = "fleet", "p", mine, false
	s.Cluster.Status.Conditions = nil
}

// equipped adds nodes and a DataPlaneAgent that knows them.
func equipped(s *dataplane.Snapshot) {
	if s.Claim == nil && s.Plane.Spec.Ownership == v1alpha1.Managed {
		up(s)
	}
	s.Plane.Status.Capacity = map[string]v1alpha1.TypeCapacity{"developer": {MaxNodes: 3}}
	for _, st := range dataplane.Decide(with(*s, phase(v1alpha1.PhaseProvisioned))).Steps {
		switch {
		case st.Nodes != nil:
			s.Nodes = append(s.Nodes, st.Nodes)
		case st.Agent != nil:
			s.Agent = st.Agent
		}
	}
	s.Installed = noon
}

func with(s dataplane.Snapshot, edits ...edit) dataplane.Snapshot {
	s.Plane = s.Plane.DeepCopy()
	for _, e := range edits {
		e(&s)
	}
	return s
}

// reported adds a valid report.
func reported(s *dataplane.Snapshot) {
	equipped(s)
	report(s)
}

func report(s *dataplane.Snapshot) {
	s.Agent.Status.Report = &v1alpha1.DataPlaneReport{
		At: *ago(0), DataPlaneUID: "u", Ready: true, AgentVersion: "v1",
		Capacity: map[string]v1alpha1.ReportedCapacity{"developer": {MaxNodes: 3, MaxUnits: 30, RemainingUnits: 30}},
		Versions: []v1alpha1.OperatorVersion{{Strimzi: "s1", Ready: true, Kafka: []string{"3.9.0"}, KafkaIBP: []string{"3.9"}}},
	}
}

// ready adds everything that a Ready data plane has.
func ready(s *dataplane.Snapshot) {
	if s.Agent == nil {
		reported(s)
	}
	if s.Claim != nil && s.Cluster != nil {
		s.Cluster.Annotations = map[string]string{hivev1.AnnotationProtectedDelete: "true", v1alpha1.AnnotationDataPlane: "u"}
	}
	s.Plane.Status = dataplane.Decide(with(*s, phase(v1alpha1.PhaseWaitingForAgent))).Status
	s.Plane.Status = dataplane.Decide(*s).Status
}

func instance(name string, edits ...func(*v1alpha1.ServiceInstance)) edit {
	return func(s *dataplane.Snapshot) {
		i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)}}
		i.Spec = v1alpha1.ServiceInstanceSpec{Type: "developer", Size: "x1", Provider: "aws", Region: "r"}
		i.Status = v1alpha1.ServiceInstanceStatus{DataPlaneName: "p", Units: 1, Placements: 1}
		for _, e := range edits {
			e(i)
		}
		s.Instances = append(s.Instances, i)
	}
}

func dying(i *v1alpha1.ServiceInstance) { i.DeletionTimestamp = ago(0) }

func deleted(s *dataplane.Snapshot) { s.Plane.DeletionTimestamp = ago(0) }
func released(s *dataplane.Snapshot) {
	s.Plane.Status.Phase, s.Plane.Status.ReleasedAt = v1alpha1.PhaseDeprovisioning, ago(0)
}

// since sets noon as the time at which the removal began.
func since(s *dataplane.Snapshot) { s.Plane.Status.PhaseSince = ago(0) }

// answered makes the agent report the contents since then.
func answered(s *dataplane.Snapshot) {
	since(s)
	s.Agent.Spec.InquiryAt = ago(0)
}

// stranger adds an unknown instance.
func stranger(s *dataplane.Snapshot) {
	s.Agent.Status.Report.Instances = []v1alpha1.InstanceReport{{UID: "lost", Name: "kafka", Phase: v1alpha1.AgentUnlisted}}
}

// occupied adds used units of unknown instances.
func occupied(s *dataplane.Snapshot) {
	s.Agent.Status.Report.Capacity = map[string]v1alpha1.ReportedCapacity{"developer": {MaxNodes: 3, MaxUnits: 30, RemainingUnits: 29}}
}

// deaf makes the data plane's API not answer its agent.
func deaf(s *dataplane.Snapshot) {
	s.Agent.Status.Report.Ready, s.Agent.Status.Report.Reason = false, v1alpha1.ReasonPlaneSilent
}

func discard(s *dataplane.Snapshot) { s.Plane.Spec.DiscardUnlisted = true }

func later(d time.Duration) edit    { return func(s *dataplane.Snapshot) { s.Now = noon.Add(d) } }
func bare(s *dataplane.Snapshot)    { s.Cluster.Annotations = nil }
func orphan(s *dataplane.Snapshot)  { s.Plane.Spec.DeletionPolicy = v1alpha1.DeletionOrphan }
func foreign(s *dataplane.Snapshot) { s.Claim.Annotations = nil }
func noClaim(s *dataplane.Snapshot) { s.Claim, s.Cluster = nil, nil }
func noRegion(s *dataplane.Snapshot) {
	s.Region, s.Hosts, s.NoRegion = nil, false, "there is no FleetRegion"
}
func asleep(s *dataplane.Snapshot)     { s.Cluster.Status.Conditions = nil }
func newAgent(s *dataplane.Snapshot)   { s.Agent.Spec.DataPlaneUID = "other" }
func unfinished(s *dataplane.Snapshot) { s.Plane.Finalizers = nil }

func edits(all ...edit) []edit { return all }

func TestAPhaseAPass(t *testing.T) {
	const nodes = "create MachinePool kafka-developer, create MachinePool worker, create DataPlaneAgent, grant the agent's permissions, install the agent"
	for name, tt := range map[string]struct {
		seen []edit
		want string
	}{
		"a new one is held, named, and claimed for":            {edits(unfinished), "add finalizer, record reference to ClusterClaim p, create ClusterClaim p from pool a | Provisioning Provisioning"},
		"after a failure the next pool is tried":               {edits(func(s *dataplane.Snapshot) { s.Failures = 3 }), "record reference to ClusterClaim p, create ClusterClaim p from pool b | Provisioning Provisioning"},
		"a cold install":                                       {edits(cold), "record reference to ClusterDeployment p, create ClusterDeployment p | Provisioning Provisioning"},
		"a cold install of what is there already":              {edits(cold, template(func(t *v1alpha1.DeploymentTemplate) { t.Installed = true }), later(time.Hour)), " | Failed NoSource"},
		"named, and killed before the claim":                   {edits(claimed, noClaim), "create ClusterClaim p from pool a | Provisioning Provisioning"},
		"claimed, and killed before it was said":               {edits(claimed), " | Provisioning Provisioning"},
		"the name is another's":                                {edits(claimed, foreign), " | Failed NameTaken"},
		"its region may come a moment later":                   {edits(noRegion), " | Accepted NoSource"},
		"its region does not come":                             {edits(noRegion, later(time.Minute)), " | Failed NoSource"},
		"no pool has its zones":                                {edits(func(s *dataplane.Snapshot) { s.Plane.Spec.MultiZone = true }, later(time.Hour)), " | Failed NoSource"},
		"a pool that ends claims is not claimed from":          {edits(unsuitable), "record reference to ClusterClaim p, create ClusterClaim p from pool b | Provisioning Provisioning"},
		"all pools put clusters to sleep":                      {edits(unsuitable, func(s *dataplane.Snapshot) { s.Pools["b"] = s.Pools["a"] }, later(time.Hour)), " | Failed PoolUnsuitable"},
		"a claim that another made for a managed one":          {edits(func(s *dataplane.Snapshot) { claimed(s); s.Claim = nil; s.Plane.Spec.ClusterRef.Claim.Name = "x" }), " | Failed NoSource"},
		"its cluster does not run yet":                         {edits(claimed, phase("Provisioning")), " | Provisioning Provisioning"},
		"its cluster runs":                                     {edits(up, phase("Provisioning")), " | Provisioned Provisioned"},
		"the claim's pool is gone":                             {edits(claimed, pending(hivev1.ReasonPoolNotFound), phase("Provisioning")), " | Failed PoolNotFound"},
		"the claim was deleted":                                {edits(claimed, noClaim, phase("Provisioning")), " | Failed ClusterGone"},
		"the claim is being deleted":                           {edits(up, func(s *dataplane.Snapshot) { s.Claim.DeletionTimestamp = ago(0) }, phase("Provisioning")), " | Failed ClusterGone"},
		"the claim ends by itself":                             {edits(up, func(s *dataplane.Snapshot) { s.Claim.Status.Lifetime = ptr.To(hivev1.Duration("1h")) }, phase("Provisioning")), " | Failed PoolUnsuitable"},
		"the pool was changed meanwhile":                       {edits(claimed, unsuitable, phase("Provisioning")), " | Failed PoolUnsuitable"},
		"a cold install goes on":                               {edits(installing, phase("Provisioning")), " | Provisioning Provisioning"},
		"a cold install has failed":                            {edits(installing, stoppedInstall, phase("Provisioning")), " | Failed InstallFailed"},
		"a registered one has its cluster":                     {edits(registered), " | Provisioning Provisioning"},
		"its kubeconfig is there":                              {edits(registered, phase("Provisioning")), " | Provisioned Provisioned"},
		"its kubeconfig is not there yet":                      {edits(registered, func(s *dataplane.Snapshot) { s.Kubeconfig = false }, phase("Provisioning")), " | Provisioning ClusterGone"},
		"how many nodes there can be is noted first":           {edits(up, phase("Provisioned")), " | Provisioned Provisioned"},
		"a type that names no nodes is waited for":             {edits(up, func(s *dataplane.Snapshot) { s.Types["developer"].Spec.NodePools = nil }, phase("Provisioned")), " | Provisioned NoNodes"},
		"then it gets nodes and the agent":                     {edits(up, sized, phase("Provisioned")), nodes + " | WaitingForAgent WaitingForAgent"},
		"a registered one gets the agent alone":                {edits(registered, sized, phase("Provisioned")), "create DataPlaneAgent, grant the agent's permissions, install the agent | WaitingForAgent WaitingForAgent"},
		"its cluster went to sleep":                            {edits(up, asleep, phase("Provisioned")), " | Provisioned ClusterNotRunning"},
		"its cluster is gone before it was ready":              {edits(up, func(s *dataplane.Snapshot) { s.Cluster = nil }, phase("Provisioned")), " | Failed ClusterGone"},
		"another's DataPlaneAgent is in the way":               {edits(equipped, newAgent, phase("Provisioned")), " | Provisioned NameTaken"},
		"its agent has not reported":                           {edits(equipped, phase("WaitingForAgent")), " | WaitingForAgent WaitingForAgent"},
		"its agent does not report: it is installed once more": {edits(equipped, phase("WaitingForAgent"), later(time.Minute)), "grant the agent's permissions, install the agent | WaitingForAgent WaitingForAgent"},
		"its agent reports nonsense":                           {edits(reported, func(s *dataplane.Snapshot) { s.Agent.Status.Report.Capacity = nil }, phase("WaitingForAgent")), " | WaitingForAgent Invalid"},
		"its agent reports":                                    {edits(reported, phase("WaitingForAgent")), " | Ready Ready"},
		"its agent reports, and cannot make any": {edits(reported, func(s *dataplane.Snapshot) {
			s.Agent.Status.Report.Ready, s.Agent.Status.Report.Reason = false, "NoOperator"
		}, phase("WaitingForAgent")), " | Ready NoOperator"},
		"its claimed cluster is protected": {edits(ready, bare), "protect cluster a-1 | Ready Ready"},
		"… unless a person has done so, or has not": {edits(ready, func(s *dataplane.Snapshot) {
			s.Cluster.Annotations = map[string]string{hivev1.AnnotationProtectedDelete: "false"}
		}), " | Ready Ready"},
		"… unless it stays anyway": {edits(ready, bare, orphan), " | Ready Ready"},
		"a protection that is not its own stays": {edits(ready, phase("Cleanup"), gone, func(s *dataplane.Snapshot) {
			s.Cluster.Annotations = map[string]string{hivev1.AnnotationProtectedDelete: "true"}
		}), "delete ClusterClaim p | Cleanup Cleanup"},
		"its claim is deleted":                                  {edits(ready, func(s *dataplane.Snapshot) { s.Claim.DeletionTimestamp = ago(0) }), " | Ready ClusterDeleting"},
		"… while it is to go":                                   {edits(ready, phase("Deprovisioning"), answered, func(s *dataplane.Snapshot) { s.Claim.DeletionTimestamp = ago(0) }), " | Deprovisioning ClusterDeleting"},
		"nothing is to be done":                                 {edits(ready), " | Ready Ready"},
		"after a restart the agent is looked at":                {edits(ready, func(s *dataplane.Snapshot) { s.Installed = time.Time{} }), "grant the agent's permissions, install the agent | Ready Ready"},
		"its agent does not report":                             {edits(ready, later(2*time.Minute)), "grant the agent's permissions, install the agent | Ready Silent"},
		"its claim is gone: nothing is destroyed by guess":      {edits(ready, noClaim), " | Ready ClusterGone"},
		"its cluster is hibernated":                             {edits(ready, asleep), " | Ready ClusterNotRunning"},
		"somebody has changed its nodes":                        {edits(ready, func(s *dataplane.Snapshot) { s.Nodes[0].Spec.Taints = nil; s.Nodes[1].Spec.Replicas = ptr.To(int64(1)) }), "update MachinePool kafka-developer, update MachinePool worker | Ready Ready"},
		"it is cordoned":                                        {edits(ready, func(s *dataplane.Snapshot) { s.Plane.Spec.Schedulable = ptr.To(false) }), " | Ready Unschedulable"},
		"an instance is listed":                                 {edits(ready, instance("i")), "update DataPlaneAgent | Ready Ready"},
		"one that is meant for another of that name is not":     {edits(ready, instance("i"), func(s *dataplane.Snapshot) { s.Hosts = false }), " | Ready Ready"},
		"it is looked at once more, and its agent is asked":     {edits(ready, phase("Deprovisioning"), since), "update DataPlaneAgent | Deprovisioning Deprovisioning"},
		"… which has answered":                                  {edits(ready, phase("Deprovisioning"), answered), " | Deprovisioning Deprovisioning"},
		"it is released":                                        {edits(ready, released, answered), " | Cleanup Cleanup"},
		"it is released, and its agent has not answered":        {edits(ready, released), "update DataPlaneAgent | Deprovisioning ContentsUnknown"},
		"it is released, and an instance nobody knows is on it": {edits(ready, released, answered, stranger), " | Deprovisioning UnlistedInstances"},
		"… which a person has given up":                         {edits(ready, released, answered, stranger, discard), " | Cleanup Cleanup"},
		"it is released, and units that nobody knows are used":  {edits(ready, released, answered, occupied), " | Deprovisioning UnlistedInstances"},
		"it is released, and its agent cannot look":             {edits(ready, released, answered, deaf), " | Deprovisioning ContentsUnknown"},
		"it is released, and its agent has fallen silent":       {edits(ready, released, answered, later(2*time.Minute)), "grant the agent's permissions, install the agent | Deprovisioning ContentsUnknown"},
		"… and its cluster is gone":                             {edits(ready, released, noClaim, later(2*time.Minute)), " | Cleanup Cleanup"},
		"… and a person has given up what is there":             {edits(ready, released, discard, later(2*time.Minute)), " | Cleanup Cleanup"},
		"a cluster that stays is let go with what is on it":     {edits(ready, orphan, deleted, answered, stranger), " | Cleanup Cleanup"},
		"an instance that nobody knows is on it":                {edits(ready, stranger), " | Ready Ready"},

		"it is released, and there is an instance":                {edits(ready, instance("i"), released), "update DataPlaneAgent | Deprovisioning InstancesLeft"},
		"somebody deletes it":                                     {edits(ready, deleted, answered), " | Cleanup Cleanup"},
		"somebody deletes it: its agent is asked first":           {edits(ready, deleted), "update DataPlaneAgent | Ready ContentsUnknown"},
		"somebody deletes it with an instance that nobody knows":  {edits(ready, deleted, answered, stranger), " | Ready UnlistedInstances"},
		"… and gives that up":                                     {edits(ready, deleted, stranger, discard), " | Cleanup Cleanup"},
		"… and gives up more than is known to be there":           {edits(ready, instance("i"), deleted, discard), "update DataPlaneAgent | Ready InstancesLeft"},
		"somebody deletes it with an instance on it":              {edits(ready, instance("i"), deleted), "update DataPlaneAgent | Ready InstancesLeft"},
		"somebody deletes it with an instance that is placed":     {edits(ready, func(s *dataplane.Snapshot) { s.Plane.Status.Bookings = []v1alpha1.Booking{{Name: "i"}} }, deleted, answered), " | Ready InstancesLeft"},
		"somebody deletes it when its cluster is gone":            {edits(ready, instance("i"), noClaim, deleted), " | Cleanup Cleanup"},
		"a registered one with an instance whose Secret is gone":  {edits(registered, ready, instance("i"), func(s *dataplane.Snapshot) { s.Kubeconfig = false }, deleted), "update DataPlaneAgent | Ready InstancesLeft"},
		"somebody deletes it before it began":                     {edits(deleted), " | Cleanup Cleanup"},
		"others hold it":                                          {edits(ready, deleted, unfinished), " | Ready Ready"},
		"all it holds goes":                                       {edits(ready, phase("Cleanup")), "revoke the agent's permissions, delete DataPlaneAgent, unprotect cluster a-1, delete ClusterClaim p | Cleanup Cleanup"},
		"it waits until all is gone":                              {edits(ready, phase("Cleanup"), gone, bare, func(s *dataplane.Snapshot) { s.Claim.DeletionTimestamp = ago(0) }), " | Cleanup Cleanup"},
		"then the object goes":                                    {edits(ready, phase("Cleanup"), gone, noClaim), "delete DataPlane | Cleanup Cleanup"},
		"then it is let go":                                       {edits(ready, phase("Cleanup"), gone, noClaim, deleted), "remove finalizer | Cleanup Cleanup"},
		"a claim that is not its own stays":                       {edits(ready, foreign, phase("Cleanup"), gone, deleted, bare), "remove finalizer | Cleanup Cleanup"},
		"a cold install is destroyed":                             {edits(installing, phase("Cleanup")), "revoke the agent's permissions, delete ClusterDeployment p | Cleanup Cleanup"},
		"an orphan's cluster stays":                               {edits(ready, orphan, phase("Cleanup"), deleted), "revoke the agent's permissions, delete DataPlaneAgent, unprotect cluster a-1, remove the agent, remove finalizer | Cleanup Cleanup"},
		"a registered cluster stays":                              {edits(registered, ready, phase("Cleanup"), deleted), "revoke the agent's permissions, delete DataPlaneAgent, remove the agent, remove finalizer | Cleanup Cleanup"},
		"a registered cluster that nobody can reach any more":     {edits(registered, ready, func(s *dataplane.Snapshot) { s.Kubeconfig = false }, phase("Cleanup"), gone, deleted), "remove finalizer | Cleanup Cleanup"},
		"a registered cluster is freed of reserved ones first":    {edits(registered, ready, reservedOnes, deleted), "update DataPlaneAgent | Ready InstancesLeft"},
		"another's DataPlaneAgent stays":                          {edits(ready, newAgent, phase("Cleanup")), "revoke the agent's permissions, unprotect cluster a-1, delete ClusterClaim p | Cleanup Cleanup"},
		"what has failed is given back, and remembered":           {edits(up, failed), "revoke the agent's permissions, delete ClusterClaim p | Failed ProvisionTimedOut"},
		"what has failed after its agent reported is asked first": {edits(ready, failed, since), "update DataPlaneAgent | Failed ProvisionTimedOut"},
		"… and answers that nothing is there": {
			edits(ready, failed, answered),
			"revoke the agent's permissions, delete DataPlaneAgent, unprotect cluster a-1, delete ClusterClaim p | Failed ProvisionTimedOut",
		},
		"… and reports an instance that nobody knows": {edits(ready, failed, answered, stranger), " | Failed ProvisionTimedOut"},
		"… which a person has given up after it failed": {
			edits(ready, failed, answered, stranger, discard),
			"revoke the agent's permissions, delete DataPlaneAgent, unprotect cluster a-1, delete ClusterClaim p | Failed ProvisionTimedOut",
		},
		"… and an instance is on it":                                    {edits(ready, instance("i"), failed, answered), "update DataPlaneAgent | Failed ProvisionTimedOut"},
		"… and has fallen silent":                                       {edits(ready, failed, answered, later(2*time.Minute)), "grant the agent's permissions, install the agent | Failed ProvisionTimedOut"},
		"… and its cluster is gone, too":                                {edits(ready, failed, answered, noClaim, later(2*time.Minute)), "revoke the agent's permissions, delete DataPlaneAgent | Failed ProvisionTimedOut"},
		"… and its cluster stays":                                       {edits(ready, orphan, failed, stranger), "revoke the agent's permissions, delete DataPlaneAgent, unprotect cluster a-1, remove the agent | Failed ProvisionTimedOut"},
		"it is deleted before it was Ready, and its agent has reported": {edits(ready, phase("WaitingForAgent"), deleted), "update DataPlaneAgent | WaitingForAgent ContentsUnknown"},
		"what has failed and was given back":                            {edits(up, noClaim, failed, gone), " | Failed ProvisionTimedOut"},
		"what has failed and is forgotten":                              {edits(up, noClaim, failed, gone, deleted), "remove finalizer | Failed ProvisionTimedOut"},
		"what has failed and is forgotten before it was released":       {edits(up, failed, deleted), "revoke the agent's permissions, delete ClusterClaim p | Failed ProvisionTimedOut"},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(tt.seen...)
			before := s.Plane.DeepCopy()
			if got := outline(dataplane.Decide(s)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if diff := cmp.Diff(before, s.Plane); diff != "" {
				t.Errorf("it was changed: %s", diff)
			}
		})
	}
}

func unsuitable(s *dataplane.Snapshot) {
	s.Pools["a"] = clusterPool("a")
	s.Pools["a"].Spec.HibernateAfter = ptr.To(hivev1.Duration("1h"))
}

func stoppedInstall(s *dataplane.Snapshot) {
	s.Cluster.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterProvisionStopped, Status: corev1.ConditionTrue, Message: "It has failed."}}
}

func sized(s *dataplane.Snapshot) {
	s.Plane.Status.Capacity = map[string]v1alpha1.TypeCapacity{"developer": {MaxNodes: 3}}
}

func gone(s *dataplane.Snapshot) { s.Agent, s.Revoked = nil, true }

func reservedOnes(s *dataplane.Snapshot) {
	s.Agent.Spec.Instances = []v1alpha1.AgentInstance{{UID: "reserved-kafka-developer-1", Reserved: true}}
	s.Agent.Status.Report.Instances = []v1alpha1.InstanceReport{{UID: "reserved-kafka-developer-1", Reserved: true}}
}

func failed(s *dataplane.Snapshot) {
	s.Plane.Status.Phase = v1alpha1.PhaseFailed
	s.Plane.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DataPlaneReady, Status: metav1.ConditionFalse, Reason: "ProvisionTimedOut"}}
}
