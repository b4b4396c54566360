package trust

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// row says which users with fewer permissions than hotspare may write some fields, and why hotspare
// may act on these fields nevertheless.
type row struct {
	// reads are patterns, in the syntax of path.Match, for the results of ListReads.
	reads []string
	// what describes the fields to readers, who describes the users who may write them.
	what, who, why string
}

// section contains the rows for one kind of object.
type section struct {
	title string
	rows  []row
}

const (
	subject = "subjects of its claim"
	owner   = "whoever may write the kind in that namespace"
	nobody  = "nobody"
)

// table is the content of docs/operate/trust.md. The first matching row counts.
var table = []section{
	{"ClusterDeployment", []row{
		{
			[]string{"ClusterDeploymentSpec.PowerState", "ClusterDeploymentSpec.HibernateAfter", "ClusterDeploymentSpec.Powerstate*"},
			"`spec.powerState`, `spec.hibernateAfter`, both timeouts", subject + "; " + owner,
			"They decide about the power of that one cluster, whose users they are. Its end is not theirs to delay.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterPoolRef", "ClusterPoolReference.*"},
			"`spec.clusterPoolRef`", owner + ", without a pool",
			"Policy `clusterdeployment-pool`: only who may read the Secrets of the pool's namespace names the pool. A cluster counts as the pool's only in a namespace that hotspare made for it (`access.IsPoolNamespace`). Policy `clusterdeployment-fields` keeps subjects out.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterMetadata", "ClusterMetadata.*"},
			"`spec.clusterMetadata`", owner,
			"Subjects: policy `clusterdeployment-fields`. An infraID that a cluster of a pool names is that cluster's (`ownership.ConfirmOwner`); the local platform compares the owner that each machine records. Secrets are read in that namespace only. Kubeconfigs that would run programs are refused.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterInstallRef", "ClusterInstallReference.*"},
			"`spec.clusterInstallRef`", owner,
			"Subjects: policy `clusterdeployment-fields`. It is read in that namespace only, of the kinds that hotspare has the right to read.",
		},
		{
			[]string{"ClusterDeploymentSpec.*", "Provisioning.*", "ClusterImageSetReference.*", "Platform.*", "PlatformSettings.*", "LocalPlatform.*"},
			"all other fields of `spec`", owner,
			"Subjects: policy `clusterdeployment-fields`. Jobs and calls of clouds use Secrets of that namespace only. In a namespace of a pool's cluster only who may read all Secrets there creates clusters (policy `cluster-credentials`).",
		},
		{
			[]string{"ClusterDeploymentStatus.*", "PowerTransition.*", "Condition.*", "OperatorVersion.*"},
			"`status`", owner,
			"Subjects: policy `cluster-records`. It decides about that one cluster only: when it counts as running or broken, and when a step is tried again. No image and no name to destroy is taken from it.",
		},
		{
			[]string{"ClusterDeployment.*"},
			"`metadata`, `spec` and `status` as a whole", owner, "As their fields.",
		},
		{
			[]string{"AnnotationPowerPause", "AnnotationRemove", "AnnotationRemoveLegacy", "AnnotationLeaveRequests", "AnnotationShelve", "LabelSkipClusterOperators"},
			"annotations `powerstate-pause`, `remove-cluster-from-pool`, `leave-certificate-requests`, `shelve`; label `resume-skips-cluster-operators`", subject + "; " + owner,
			"They decide about the power of that one cluster, approve less for it, or have it destroyed.",
		},
		{
			[]string{
				"AnnotationFake", "AnnotationPoolVersion", "AnnotationCustomizationVersion", "AnnotationSourceVersion", "AnnotationReconcilePause", "AnnotationProtectedDelete", "AnnotationTryInstallOnce",
				"FinalizerDeprovision", "FinalizerLease",
			},
			"all other labels and annotations under `hive.openshift.io` and `hotspare.io`; finalizers; owners", owner,
			"Subjects: policy `clusterdeployment-fields`.",
		},
		{
			[]string{"LabelPlatform", "LabelRegion", "LabelType", "LabelVersion*", "LabelImageSet"},
			"labels that describe the cluster", owner,
			"hotspare writes them for others to select by, and does not read them.",
		},
	}},
	{"ClusterProvision, ClusterDeprovision", []row{
		{
			[]string{"ClusterProvision*.*", "ClusterDeprovision*.*", "MetadataJSON.*"},
			"all fields", owner,
			"Subjects: policy `cluster-records`. An infraID that a cluster of a pool names is that cluster's (`ownership.ConfirmOwner`); the local platform compares owners.",
		},
		{
			[]string{"LabelClusterDeployment", "LabelClusterProvision", "LabelClusterDeprovision", "LabelInstall", "LabelUninstall", "LabelJobType", "LabelInstaller", "LabelInfraID", "LabelSecretType"},
			"labels of records, Jobs, pods and Secrets", owner,
			"Read in the cluster's own namespace only, and together with the owner reference.",
		},
	}},
	{"ClusterPool", []row{
		{
			[]string{"ClusterPoolStatus.Pending"},
			"`status.pending`", owner,
			"A name there leads only to a namespace that hotspare made for the pool; any other name is dropped.",
		},
		{
			[]string{"ClusterPoolStatus.*", "InventoryEntryStatus.*"},
			"`status`", owner, "It decides about that pool only: which attempts count, and what is said.",
		},
		{
			[]string{"ClusterPool*.*", "HibernationConfig.*", "NameReference.*"},
			"`spec`", owner,
			"Secrets and customizations are read in that namespace only. How many clusters a pool may have is bounded by `maxSize`, the platform and the cloud's quota, not by hotspare.",
		},
		{
			[]string{"LabelPoolName", "LabelPoolNamespace", "LabelNamespacePoolName"},
			"labels of a namespace that say whose it is", "nobody with fewer rights",
			"Policy `namespace-pool`.",
		},
		{
			[]string{"FinalizerPool"}, "its finalizer", owner, "Removed by hand, it leaves clusters behind that the pool no longer counts; their own finalizers stay.",
		},
	}},
	{"ClusterClaim", []row{
		{
			[]string{"ClusterClaimSpec.Namespace"}, "`spec.namespace`", nobody, "Policy `clusterclaim-namespace`: hotspare alone writes it.",
		},
		{
			[]string{"ClusterClaimSpec.Subjects"},
			"`spec.subjects`", owner,
			"It gives away what the claim has: the cluster and the Secrets that `spec.clusterMetadata` names. Access is given only in a namespace that hotspare made for a cluster of that pool.",
		},
		{
			[]string{"ClusterClaim*.*"},
			"all other fields", owner,
			"Lifetimes are bounded by the pool's `claimLifetime.maximum`, from `spec` and the time of assignment each time.",
		},
		{
			[]string{"AnnotationClaim", "LabelAccess", "FinalizerClaim"},
			"its finalizer; marks on Roles and RoleBindings", owner,
			"Roles and RoleBindings are compared with what they should be, whole; subjects hold no rights on RBAC.",
		},
	}},
	{"ClusterDeploymentCustomization, ClusterImageSet", []row{
		{
			[]string{"ClusterDeploymentCustomization*.*", "PatchEntity.*", "InstallerManifestPatch.*", "ManifestSelector.*"},
			"all fields", owner, "It decides about the clusters of the pools of that namespace, whose inventory it is. Patches cannot reach fields of `spec` that name other clusters.",
		},
		{[]string{"ClusterImageSet*.*"}, "all fields", nobody, "Cluster-scoped: for who may write it everywhere."},
	}},
	{"MachinePool", []row{
		{
			[]string{"MachinePoolStatus.*", "MachineSetStatus.*"}, "`status`", owner, "Subjects: policy `cluster-records`. It decides about that pool's labels and taints only.",
		},
		{
			[]string{"MachinePool*.*", "TaintIdentifier.*", "LabelMachinePool", "LabelManaged", "AnnotationEmptySince", "FinalizerMachinePool", "ClusterDeploymentReference.*"},
			"`spec`, finalizer, marks in the cluster", subject + "; " + owner,
			"They have machines made in their own cluster, by the cluster's own controllers and credentials; on the local platform within the memory of the computer, and only in a cluster whose machines record it as their owner.",
		},
	}},
	{"PowerSchedule", []row{
		{
			[]string{"PowerSchedule*.*", "Window.*", "TakenSlot.*", "record.*", "planInputs.*", "AnnotationSlot"},
			"all fields", owner,
			"Policy `powerschedule-reach`: only who could switch these clusters writes a schedule for them.",
		},
	}},
	{"Fleet", []row{
		{
			[]string{"DataPlaneReport.*", "InstanceReport.*", "ReportedCapacity.*", "Refusal.*", "UnlistedInstance.*", "AgentStatus.*", "DataPlaneAgentStatus.*", "InstanceVersions.*"},
			"status of a DataPlaneAgent", "the agent of that one data plane",
			"It is believed about that data plane only, and only where believing it is safe: more use and less room than the hub knows count, and a plane is empty only if both say so.",
		},
		{
			[]string{"DataPlaneAgent*.*", "AgentInstance.*", "AgentPool.*"}, "spec of a DataPlaneAgent", nobody, "hotspare writes it anew from the ServiceInstances; the agent may only read it.",
		},
		{
			[]string{"ServiceInstance*.*", "Booking.*", "FinalizerServiceInstance", "LabelInstanceType"},
			"a ServiceInstance", owner,
			"It uses up units of the region, which the region's limit bounds, and places nothing but itself.",
		},
		{
			[]string{
				"FleetRegion*.*", "RegionType*.*", "ClusterSource.*", "DeploymentSource.*", "PoolSource.*", "ClaimSource.*", "ScalingDecision.*", "ScaleUp.*", "ScaleDown.*",
				"PendingDataPlane.*", "NodePool.*", "DefaultNodePool.*", "Reserved.*", "PoolReference.*", "TypeCapacity.*",
			},
			"a FleetRegion", owner,
			"Clusters are claimed from pools of, or made in, its own namespace; what a template may set of a ClusterDeployment is a list.",
		},
		{
			[]string{"DataPlane*.*", "ClusterReference.*", "FinalizerDataPlane", "AnnotationDataPlane"},
			"a DataPlane", owner,
			"Clusters and kubeconfigs are those of its own namespace. Kubeconfigs that would run programs are refused.",
		},
		{[]string{"InstanceType*.*", "InstanceSize.*"}, "an InstanceType", nobody, "Cluster-scoped: for who may write it everywhere."},
	}},
}

// findMatchingRow returns the row for a name that ListReads returns, or nil.
func findMatchingRow(name string) *row {
	for i := range table {
		for j := range table[i].rows {
			r := &table[i].rows[j]
			if slices.ContainsFunc(r.reads, func(p string) bool { return matchesPattern(p, name) }) {
				return r
			}
		}
	}
	return nil
}

func matchesPattern(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// renderTable renders the table as Markdown.
func renderTable() string {
	var b strings.Builder
	for _, s := range table {
		fmt.Fprintf(&b, "\n### %s\n\n| field | who may write it, with fewer rights | what makes it safe to act on |\n|---|---|---|\n", s.title)
		for _, r := range s.rows {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, r.who, r.why)
		}
	}
	return b.String()
}
