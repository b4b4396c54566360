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
	owner   = "users who may write the kind in that namespace"
	nobody  = "nobody"
)

// table is the content of docs/operate/trust.md. The first matching row counts.
var table = []section{
	{"ClusterDeployment", []row{
		{
			[]string{"ClusterDeploymentSpec.PowerState", "ClusterDeploymentSpec.HibernateAfter", "ClusterDeploymentSpec.Powerstate*"},
			"`spec.powerState`, `spec.hibernateAfter`, both timeouts", subject + "; " + owner,
			"These users decide about the power of that one cluster, which they use. They cannot delay its deletion.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterPoolRef", "ClusterPoolReference.*"},
			"`spec.clusterPoolRef`", owner + ", without a pool",
			"Policy `clusterdeployment-pool`: only users who may read the Secrets of the pool's namespace and update the pool can name it. A cluster belongs to the pool only in a namespace that hotspare created for it (`rbac.IsPoolNamespace`). Policy `clusterdeployment-fields` excludes subjects.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterMetadata", "ClusterMetadata.*"},
			"`spec.clusterMetadata`", owner,
			"Subjects: policy `clusterdeployment-fields`. An infraID that a cluster of a pool names belongs to that cluster (`ownership.ConfirmOwner`); of two that adopt the same cluster, the first one manages it (`ownership.ConfirmAdopter`); the local platform compares the owner that each machine records. Secrets are read in that namespace only. Kubeconfigs that would run programs are refused.",
		},
		{
			[]string{"ClusterDeploymentSpec.ClusterInstallRef", "ClusterInstallReference.*"},
			"`spec.clusterInstallRef`", owner,
			"Subjects: policy `clusterdeployment-fields`. It is read in that namespace only, of the kinds that hotspare has the right to read.",
		},
		{
			[]string{"Platform.Exec", "ExecPlatform.*", "ExecTimeouts.*"},
			"`spec.platform.exec`", owner,
			"Subjects: policy `clusterdeployment-fields`. Policy `recipe-use`: only users with the verb `use` on a recipe can create clusters with it. Under `hotspare up`, it runs only programs of the recipes in the folder that the administrator of the hub names; on another hub, Jobs in that namespace run programs of the release image, with rights on their own state only. The schema limits the recipe's name to one folder, and the recipe's own schema limits its parameters. A recipe's author decides what its programs may do. Secrets are read in that namespace only.",
		},
		{
			[]string{"CAPI*.*", "FieldSettings.*"},
			"`spec.platform.capi`", owner,
			"Subjects: policy `clusterdeployment-fields`. These users get a Cluster of Cluster API in that namespace, or other objects of Cluster API's groups there, with hotspare's rights; providers limit by namespace who may use an identity. Policy `clusterclass-use`: only users who may read a ClusterClass in another namespace can name it; for a FleetRegion, policy `fleetregion-reach` checks it. hotspare deletes only objects that record the UID of the ClusterDeployment, and stops and starts the instances that Machines in that namespace name, with credentials in that namespace only. The template of a pool's cluster is read in the pool's namespace, which policy `clusterdeployment-pool` protects.",
		},
		{
			[]string{"ClusterDeploymentSpec.*", "Provisioning.*", "ClusterImageSetReference.*", "Platform.*", "PlatformSettings.*", "LocalPlatform.*"},
			"all other fields of `spec`", owner,
			"Subjects: policy `clusterdeployment-fields`. Jobs and calls of clouds use Secrets of that namespace only, and any Secret there, also in an image of these users: they must be trusted with the Secrets of the namespace. In a namespace of a pool's cluster only users who may read all Secrets there can create clusters (policy `cluster-credentials`).",
		},
		{
			[]string{"ClusterDeploymentStatus.*", "PowerTransition.*", "RefusedDepth.*", "Condition.*", "OperatorVersion.*"},
			"`status`", owner,
			"Subjects: policy `cluster-records`. It affects that one cluster only: when it counts as running or broken, when a step is retried, and whether its destruction waits for a bundle. hotspare takes no image and no name of a cluster to destroy from it.",
		},
		{
			[]string{"ClusterDeployment.*"},
			"`metadata`, `spec` and `status` as a whole", owner, "As their fields.",
		},
		{
			[]string{"AnnotationPowerPause", "AnnotationRemove", "AnnotationRemoveLegacy", "AnnotationLeaveRequests", "AnnotationShelve", "AnnotationSleepDepth", "AnnotationInactivity", "LabelSkipClusterOperators"},
			"annotations `powerstate-pause`, `remove-cluster-from-pool`, `leave-certificate-requests`, `shelve`, `sleep-depth`, `inactivity`; label `resume-skips-cluster-operators`", subject + "; " + owner,
			"They control the power of that one cluster, reduce approvals for it, or have it destroyed.",
		},
		{
			[]string{
				"AnnotationFake", "AnnotationPoolVersion", "AnnotationCustomizationVersion", "AnnotationSourceVersion", "AnnotationRecipeVersion", "AnnotationReconcilePause", "AnnotationProtectedDelete", "AnnotationTryInstallOnce",
				"FinalizerDeprovision", "FinalizerLease",
			},
			"all other labels and annotations under `hive.openshift.io` and `hotspare.io`; finalizers; owners", owner,
			"Subjects: policy `clusterdeployment-fields`.",
		},
		{
			[]string{"LabelPlatform", "LabelRegion", "LabelType", "LabelVersion*", "LabelImageSet"},
			"labels that describe the cluster", owner,
			"hotspare writes them for selectors of other programs, and does not read them.",
		},
	}},
	{"ClusterProvision, ClusterDeprovision", []row{
		{
			[]string{"ClusterProvision*.*", "ClusterDeprovision*.*", "MetadataJSON.*"},
			"all fields", owner,
			"Subjects: policy `cluster-records`. An infraID that a cluster of a pool names belongs to that cluster (`ownership.ConfirmOwner`); the local platform compares owners.",
		},
		{
			[]string{"LabelClusterDeployment", "LabelClusterProvision", "LabelClusterDeprovision", "LabelInstall", "LabelUninstall", "LabelJobType", "LabelInstaller", "LabelInfraID", "LabelSecretType"},
			"labels of records, Jobs, pods and Secrets", owner,
			"hotspare reads them in the cluster's own namespace only, and together with the owner reference.",
		},
	}},
	{"ClusterPool", []row{
		{
			[]string{"ClusterPoolStatus.Pending"},
			"`status.pending`", owner,
			"hotspare uses a name there only for a namespace that it created for the pool, and drops any other name.",
		},
		{
			[]string{"ClusterPoolStatus.*", "InventoryEntryStatus.*"},
			"`status`", owner, "It affects that pool only: which attempts count, and what is reported.",
		},
		{
			[]string{"ClusterPool*.*", "HibernationConfig.*", "NameReference.*"},
			"`spec`", owner,
			"Secrets and customizations are read in that namespace only, and any Secret there can be used: a person who may change pools must be trusted with the Secrets of the namespace. Policy `clusterpool-installer-env`: only users who may read them can put values of Secrets into `installerEnv`. `maxSize`, the platform and the cloud's quota limit the number of clusters of a pool, not hotspare.",
		},
		{
			[]string{"LabelPoolName", "LabelPoolNamespace", "LabelNamespacePoolName"},
			"labels of a namespace that name its pool", nobody,
			"Policy `namespace-pool`.",
		},
		{
			[]string{"FinalizerPool"}, "its finalizer", owner, "Removing it by hand leaves clusters that the pool no longer counts; their own finalizers stay.",
		},
	}},
	{"ClusterClaim", []row{
		{
			[]string{"ClusterClaimSpec.Namespace"}, "`spec.namespace`", nobody, "Policy `clusterclaim-namespace`: hotspare alone writes it.",
		},
		{
			[]string{"ClusterClaimSpec.Subjects"},
			"`spec.subjects`", owner,
			"It grants access to the resources of the claim: the cluster and the Secrets that `spec.clusterMetadata` names. Access is granted only in a namespace that hotspare created for a cluster of that pool.",
		},
		{
			[]string{"AnnotationCreator", "AnnotationCreatorGroups"},
			"annotations `creator` and `creator-groups`", nobody,
			"Policy `clusterclaim-creator`: they are the user who created the claim, and do not change; users who may impersonate everybody may write them. Condition Admitted: policies `clusterclaim-admission` and `clusterclaim-admitted-pool`.",
		},
		{
			[]string{"AnnotationHeartbeat", "AnnotationHeartbeatTimeout"},
			"annotations `heartbeat` and `heartbeat-timeout`", owner,
			"They can end that one claim, as its deletion or `spec.lifetime` can. No time in them is used: hotspare measures by its own clock.",
		},
		{
			[]string{"AnnotationPriority"},
			"annotation `priority`", owner,
			"It moves that claim in the queue of its pool by at most 1000 minutes. The `maxPriority` of ClaimPolicies limits it in each pass of the pool, so that a change after the admission gains nothing; `status.priority` is not read.",
		},
		{
			[]string{"AnnotationDiagnoseAtRelease"},
			"annotation `diagnose-at-release`", owner,
			"It delays the destruction of that one cluster by at most two minutes, counted from its deletion by the API server's time. Each cluster has one such bundle, without secrets, in the store of the administrator, who alone can read it. All of them have at most half of the space of the store, so that they push out no bundle of a failure.",
		},
		{
			[]string{"ClusterClaim*.*"},
			"all other fields", owner,
			"Lifetimes are limited by the pool's `claimLifetime.maximum`, from `spec` and the time of assignment each time.",
		},
		{
			[]string{"AnnotationClaim", "LabelAccess", "FinalizerClaim"},
			"its finalizer; marks on Roles and RoleBindings", owner,
			"hotspare compares whole Roles and RoleBindings with their desired state; subjects have no rights on RBAC.",
		},
	}},
	{"ClusterDeploymentCustomization, ClusterImageSet", []row{
		{
			[]string{"ClusterDeploymentCustomization*.*", "PatchEntity.*", "InstallerManifestPatch.*", "ManifestSelector.*"},
			"all fields", owner, "It affects the clusters of the pools of that namespace that use it. Patches cannot reach fields of `spec` that name other clusters, programs of the installer, or Secrets (`ownedFields` of internal/install/config).",
		},
		{[]string{"ClusterImageSet*.*"}, "all fields", nobody, "Cluster-scoped: only users with rights in all namespaces may write it."},
	}},
	{"MachinePool", []row{
		{
			[]string{"MachinePoolStatus.*", "MachineSetStatus.*"}, "`status`", owner, "Subjects: policy `cluster-records`. It affects that pool's labels and taints only.",
		},
		{
			[]string{"MachinePool*.*", "TaintIdentifier.*", "LabelMachinePool", "LabelManaged", "AnnotationEmptySince", "FinalizerMachinePool", "ClusterDeploymentReference.*"},
			"`spec`, finalizer, marks in the cluster", subject + "; " + owner,
			"They create machines in these users' own cluster, by the cluster's own controllers and credentials; on the local platform within the memory of the computer, and only in a cluster whose machines record it as their owner.",
		},
	}},
	{"PowerSchedule", []row{
		{
			[]string{"PowerSchedule*.*", "Window.*", "TakenSlot.*", "record.*", "planInputs.*", "AnnotationSlot"},
			"all fields", owner,
			"Policy `powerschedule-reach`: only users who may change the power of these clusters can write a schedule for them.",
		},
	}},
	{"ClaimedClusters", []row{
		{
			[]string{"PoolPolicySpec.ClaimedClusters", "ClaimedClusters.*"},
			"`spec.claimedClusters` of a PoolPolicy", "users who may write PoolPolicies in that namespace",
			"Policy `poolpolicy-inactivity`: only users who may patch the pool can set or change it. What a cluster reports about its use is its users' own: it affects when that one cluster sleeps.",
		},
	}},
	{"ClusterBootstrap", []row{
		{
			[]string{"PoolPolicySpec.BootstrapRef", "BootstrapReference.*"},
			"`spec.bootstrapRef` of a PoolPolicy", "users who may write PoolPolicies in that namespace",
			"Policy `poolpolicy-bootstrap`: only users who may patch the pool can set, change or remove it, only users who may read the Secrets of the namespace can set or change it, and only users who may delete the pool can delete such a PoolPolicy. While it names nothing that exists, no claim gets a spare.",
		},
		{
			[]string{"ManifestSource.ConfigMapRef"},
			"the ConfigMaps that `manifests.from`, `job.envFrom`, `chart.archiveFrom` and `chart.valuesFrom` name", "users who may write ConfigMaps in that namespace",
			"Only the rights on ConfigMaps protect them. Whoever may write such a ConfigMap can put objects into the unclaimed clusters of the pools, and obtain the Secrets that the same ClusterBootstrap names, because both reach the same cluster. Where these users must not have the Secrets, a ClusterBootstrap must name Secrets only.",
		},
		{
			[]string{"ClusterBootstrap*.*", "BootstrapStep.*", "BootstrapManifests.*", "BootstrapJob.*", "BootstrapChart.*", "ManifestSource.*", "ManifestReference.*", "Gate.*", "GateObjectCheck.*", "GatePod.*"},
			"all fields", owner,
			"Policy `clusterbootstrap-reach`: only users who may patch the pools of that namespace can write the spec, and only users who may read the Secrets there can write steps that refer to a Secret. Steps are taken and gates are checked in unclaimed clusters only, in namespaces that hotspare created for clusters of that pool. Messages contain names of objects, and no values of Secrets. A forged status delays claims, and lets none have a cluster.",
		},
		{
			[]string{"GateRecord.*"},
			"`status.gates` of a ClusterDeployment", owner,
			"Subjects: policy `cluster-records`; an unclaimed cluster has no subjects. A verdict counts in the run and for the gates that it names only, and the write that ends a run removes it. Users who may write the status can let a claim have that one cluster early, as by `status.powerState`.",
		},
		{
			[]string{"BootstrapRecord.*"},
			"`status.bootstrap` of a ClusterDeployment", owner,
			"Subjects: policy `cluster-records`; an unclaimed cluster has no subjects. Only the steps that the ClusterBootstrap has now are taken, whatever the record says. Users who may write the status can let a claim have that one cluster early, as by `status.powerState`.",
		},
		{
			[]string{"LabelGate", "LabelBootstrapVersion"},
			"labels `gate` and `bootstrap-version` of objects in an unclaimed cluster", nobody,
			"Only the admin of that cluster may write it; it has no user yet.",
		},
	}},
	{"ClaimPolicy", []row{
		{
			[]string{"ClaimPolicy*.*", "ClaimSubject.*"},
			"all fields", owner,
			"It restricts claims in its namespace, and gives nobody a right. Policy `claimpolicy-reach`: only users who may delete the claims can end them by `spec.lifetime`. Its `status` is not read.",
		},
	}},
	{"ClaimSet", []row{
		{
			[]string{"ClaimSetSpec.*", "ClaimSetPoolSelector.*", "PoolPreference.*", "ClaimSet.*", "FinalizerClaimSet"},
			"`spec`, finalizer", owner,
			"hotspare creates ClusterClaims of it: policy `claimset-reach` lets only users who may create them create a set, and ClaimPolicies count them as those of its creator (policy `clusterclaim-creator`). A set has one place in the queue of one pool. Removing the finalizer by hand leaves its claims to the garbage collector. A ClusterClaim belongs to a set by an owner reference, which only hotspare adds (policy `clusterclaim-set`): with the UID of the set, and one of the names of its claims. Otherwise it gets no cluster.",
		},
		{
			[]string{"AnnotationHeartbeat", "AnnotationHeartbeatTimeout"},
			"annotations `heartbeat` and `heartbeat-timeout`", owner,
			"They can end that one set, as its deletion can. No time in them is used: hotspare measures by its own clock.",
		},
		{
			[]string{"ClaimSetStatus.*"},
			"`status`", owner,
			"From `servedTime` on, the set creates no claims, and ends with its last one: a forged time ends a set that waits. Removing it lets a set without claims be served once more, in its place in the queue. Condition HeartbeatMissing ends a set only if its heartbeat has been missing for the timeout. Nothing else in it is acted upon.",
		},
	}},
	{"PoolPolicy", []row{
		{
			[]string{"PoolPolicy*.*", "PolicyObjective.*", "CountLimits.*", "PolicyPrices.*", "PolicySleep.*", "SleepRung.*", "CalendarEntry.*", "AnnotationResumeSizing"},
			"`spec`, annotation `resume-sizing`", owner,
			"Policy `poolpolicy-reach`: only users who may patch the pool can write a policy in mode Auto for it. In mode Recommend, nothing is changed.",
		},
		{
			[]string{"RecommendedCount*.*", "ManualChange.*"},
			"`status`", owner,
			"A forged change by hand delays the next change of the counts until midnight at most. Nothing else in it is acted upon.",
		},
		{
			[]string{"EstimatedPrices.*"},
			"`status.estimatedPrices`; ConfigMap `hotspare-prices`", "of the status, " + owner + "; of the ConfigMap, users who may write ConfigMaps in hotspare's namespace",
			"hotspare acts on the estimate that it has just computed, and not on the status, which the command line and the console show. The ConfigMap changes what a budget allows, within the limits of the policy; `pricetable.Parse` bounds each price. Of the Secret with the pool's install-config, the estimate contains instance types and numbers of machines only, for users who may read PoolPolicies and no Secrets: `config.ListMachines` returns, and quotes in errors, nothing else.",
		},
		{
			[]string{"AnnotationSizing"},
			"annotation `sizing` of a pool", "users who may write pools in that namespace",
			"They may set the counts themselves.",
		},
		{
			[]string{"AnnotationSleepLadder"},
			"annotation `sleep-ladder` of a pool", "users who may write pools in that namespace",
			"They may set the power of its spares themselves. It is parsed, and numbers in it are bounded.",
		},
		{
			[]string{"AnnotationClaimsImported"},
			"annotation `claims-imported` of a PoolPolicy", "users who may write PoolPolicies in that namespace",
			"A change of it makes hotspare read the record of claims again, which is not trusted. Its value is only compared.",
		},
		{
			[]string{"LabelDemandRecord"},
			"the ConfigMap with the record of claims", "users who may write ConfigMaps and pools in that namespace",
			"Policy `demand-record`: only users who may patch the pool can write it. A forged record leads to wrong counts within the limits of the policy, which mode Auto needs: `record.Decode` refuses what is not a record, and each value is bounded.",
		},
	}},
	{"Fleet", []row{
		{
			[]string{"DataPlaneReport.*", "InstanceReport.*", "ReportedCapacity.*", "Refusal.*", "UnlistedInstance.*", "AgentStatus.*", "DataPlaneAgentStatus.*", "InstanceVersions.*"},
			"status of a DataPlaneAgent", "the agent of that one data plane",
			"hotspare uses it for that data plane only, and only where that is safe: higher use and less capacity than the hub knows count, and a data plane is empty only if hub and agent agree.",
		},
		{
			[]string{"DataPlaneAgent*.*", "AgentInstance.*", "AgentPool.*"}, "spec of a DataPlaneAgent", nobody, "hotspare derives it from the ServiceInstances; the agent may only read it.",
		},
		{
			[]string{"ServiceInstance*.*", "Booking.*", "FinalizerServiceInstance", "LabelInstanceType"},
			"a ServiceInstance", owner,
			"It uses up units of the region, which the region's limit restricts, and places only itself.",
		},
		{
			[]string{
				"FleetRegion*.*", "RegionType*.*", "ClusterSource.*", "DeploymentSource.*", "PoolSource.*", "ClaimSource.*", "ScalingDecision.*", "ScaleUp.*", "ScaleDown.*",
				"PendingDataPlane.*", "NodePool.*", "DefaultNodePool.*", "Reserved.*", "PoolReference.*", "TypeCapacity.*",
			},
			"a FleetRegion", owner,
			"Clusters are claimed from pools in its own namespace, or created there; a list defines the fields of a ClusterDeployment that a template may set. Policy `fleetregion-reach`: only users who may create the claims or clusters of its source there can write the spec, and only users with the verb `use` on the recipe of its template can set or change that one.",
		},
		{
			[]string{"DataPlane*.*", "ClusterReference.*", "FinalizerDataPlane", "AnnotationDataPlane"},
			"a DataPlane", owner,
			"Clusters and kubeconfigs are those of its own namespace. Policy `dataplane-reach`: only users who may patch the claim or the ClusterDeployment, or read the Secret, can name it. Kubeconfigs that would run programs are refused.",
		},
		{[]string{"InstanceType*.*", "InstanceSize.*"}, "an InstanceType", nobody, "Cluster-scoped: only users with rights in all namespaces may write it."},
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
