# make help lists the targets.
SHELL := /bin/bash -o pipefail

KUBE_VERSION  := v1.36.3
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATA_DIR      ?= .hotspare
COMPONENT     := k8s.io/component-base/version
LDFLAGS       := -s -w -X hotspare.io/hotspare/internal/version.version=$(VERSION) \
	-X $(COMPONENT).gitVersion=$(KUBE_VERSION) -X $(COMPONENT).gitMajor=1 -X $(COMPONENT).gitMinor=36 \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBE_VERSION)

# The binaries are static, and all programs and tests use the packages that make build has compiled: with cgo, every
# dependency would be compiled again. Only the race detector needs cgo, and a C compiler: without one, the tests run
# without it.
export CGO_ENABLED := 0
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)
RACE_TEST := $(if $(RACE),CGO_ENABLED=1) go test -vet=off $(RACE)
# Many tests wait for programs and clocks: four packages at a time keep two processors busy.
TOGETHER := -p $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) )))
BUILD := go build -ldflags '$(LDFLAGS)'

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

.PHONY: build
build: ## Build bin/hotspare and bin/hotspare-manager.
	@[ -e bin/hotspare ] || echo 'Building. The first time takes some minutes: Kubernetes is in it.'
	@$(BUILD) -o bin/hotspare ./cmd/hotspare
	@$(BUILD) -o bin/hotspare-manager ./cmd/hotspare-manager

.PHONY: up
up: build ## Build, then start everything on this machine; Ctrl-C stops it.
	@bin/hotspare up --data-dir $(DATA_DIR)

# The words of Go with which goroutines share memory. In packages without one, in code and tests, the race detector has
# nothing to find, and makes tests several times slower.
SHARING    := ^\s*go (func|[a-zA-Z_.]+\()|\.Go\(|\bmake\(chan|\bsync\.|\batomic\.|\bhttptest\.|\bnet\.Listen
CONCURRENT := grep -rlE --include='*.go' '$(SHARING)' . | xargs dirname | sort -u | sed 's|^\.|hotspare.io/hotspare|'

# These compute in one goroutine all the same.
COMPUTING := ./internal/controller/claimset ./internal/controller/dataplane ./internal/controller/poolpolicy ./internal/controller/provision \
	./internal/crd ./internal/power/...

# These link Kubernetes' servers or the clients of whole clouds: to compile those for the race detector would take longer
# than all other tests with it. make race does.
LINKING := ./cmd/... ./internal/cloud/aws/... ./internal/cloud/azure ./internal/cloud/capi ./internal/cloud/gcp ./internal/cloud/vsphere \
	./internal/diagnostics/bucket ./internal/embedded/controlplane ./internal/embedded/controlplane/etcdclient \
	./internal/embedded/controlplane/etcddata ./internal/embedded/controlplane/lazyopenapi ./internal/embedded/controlplane/resourcemetrics \
	./internal/embedded/hub ./internal/embedded/spoke ./internal/embedded/spoke/containernode ./internal/embedded/spoke/signer ./internal/manager ./internal/platform ./internal/up

# make verify runs the checks of go vet, so the tests do without. Packages whose tests mostly wait, one after the other, come first, beside the other packages.
WAITING      := ./test/docs ./internal/embedded/controlplane/etcddata ./internal/embedded/controlplane/etcdclient
RACE_WAITING := ./recipes ./internal/install/job ./internal/recipe ./internal/install/local

# test/e2e comes last and alone: its clusters keep two processors busy.
.PHONY: test
test: build bin/helm ## Run all tests, those of packages with goroutines under the race detector.
	go test $(TOGETHER) -vet=off -shuffle=on $(WAITING) $(COMPUTING) $(LINKING) $$(go list ./... | grep -vxFf <($(CONCURRENT)))
	$(RACE_TEST) $(TOGETHER) -shuffle=on -timeout 30m $$(go list $(RACE_WAITING) ./... | grep -xFf <($(CONCURRENT)) | grep -vxFf <(go list $(COMPUTING) $(LINKING) ./test/e2e))
	$(RACE_TEST) -shuffle=on -timeout 120m ./test/e2e
	@$(MAKE) --no-print-directory test-hivetypes

.PHONY: race
race: build bin/helm ## Run the tests of all packages with goroutines, except for test/e2e, under the race detector.
	$(RACE_TEST) -shuffle=on -timeout 60m $$(go list ./... | grep -xFf <($(CONCURRENT)) | grep -vxFf <(go list ./test/e2e))

.PHONY: test-hivetypes
test-hivetypes: build ## Run the tests of the API through Hive's own public types, a module of its own.
	cd test/hivetypes && go test -shuffle=on -count=1 -timeout 30m ./...

# With how many clusters Cluster API's controllers are tested, and how long that may take. Three take
# about four minutes, most of it waiting. Set CAPI_TEST=90m for 100.
CAPI_TEST     := 10m
CAPI_CLUSTERS ?= 3

.PHONY: test-capi
test-capi: build ## Hibernate and resume CAPI_CLUSTERS clusters, 3, and a pool, under the controllers of Cluster API, which it builds.
	@mkdir -p bin/capi
	@cd test/capi && for manager in core bootstrap/kubeadm controlplane/kubeadm test/infrastructure/docker; do \
		go build -trimpath -ldflags '-s -w' -o ../../bin/capi/$$(echo $$manager | tr / -) sigs.k8s.io/cluster-api/$$manager || exit 1; done
	@cd test/capi && go test -count=1 -v -timeout $(CAPI_TEST) . -args -clusters=$(CAPI_CLUSTERS)

.PHONY: test-more
test-more: test-sims test-containers test-browser ## Run the tests that need packages of Debian, which it installs, as root or by sudo.

SIMS := ./internal/cloud/openstack ./internal/cloud/baremetal/... ./internal/cloud/aws/ec2test ./test/sims
# How long the tests may take, each package and all: two minutes and a half are usual.
SIMS_EACH := 20m
SIMS_ALL  := 25m

.PHONY: test-sims
test-sims: ## Run the tests of clouds against simulators from Debian, which it installs, as root or by sudo.
	@test/install test/sims
	@timeout --kill-after=15s $(SIMS_ALL) go test -tags sims -count=1 -timeout $(SIMS_EACH) $(SIMS) || { code=$$?; \
		[ $$code != 124 ] || echo "make test-sims: not done after $(SIMS_ALL), and ended" >&2; exit $$code; }

# How long the tests may take, and how long with what go test cannot end: four minutes are usual.
BROWSER_TEST := 20m
BROWSER_ALL  := 22m

.PHONY: test-browser
test-browser: build ## Run the tests of the console in Debian's Chromium, which it installs, as root or by sudo.
	@test/install test/browser
	@timeout --kill-after=15s $(BROWSER_ALL) go test -tags browser -shuffle=on -count=1 -timeout $(BROWSER_TEST) ./test/browser || { code=$$?; \
		[ $$code != 124 ] || echo "make test-browser: not done after $(BROWSER_ALL), and ended" >&2; exit $$code; }

# How long the tests may take: seven minutes are usual.
CONTAINERS_TEST := 25m

.PHONY: test-containers
test-containers: build bin/helm ## Run the tests of local clusters with containers, as root, with containerd from Debian, which it installs.
	@test/install test/containers
	@go test -tags containers -shuffle=on -count=1 -timeout $(CONTAINERS_TEST) ./test/containers

KILLS ?= 30

.PHONY: kills
kills: build ## Kill processes of a local cluster with real pods KILLS times, 30, at random moments, as root.
	@test/install test/containers
	go test -tags containers -count=1 -v -timeout 60m -run TestNothingIsLeftOfKilledProcesses ./test/containers -args -kills=$(KILLS)

# Kubernetes' own end-to-end tests: those of pods, networks and volumes that each cluster must pass. The
# others of these need an image that is not made here, or a setting of the control plane.
KUBERNETES_FOCUS ?= \[sig-(network|node|storage)\].*\[Conformance\]
KUBERNETES_SKIP  ?= \[Serial\]|\[Disruptive\]|\[Slow\]|AllowPrivilegeEscalation

.PHONY: kubernetes-tests
kubernetes-tests: build ## Run Kubernetes' own end-to-end tests that match KUBERNETES_FOCUS on a local cluster with real pods, as root.
	@test/install test/containers
	@test/install test/kubernetes
	@mkdir -p bin/kubernetes
	@cd test/kubernetes && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../bin/kubernetes/agnhost k8s.io/kubernetes/test/images/agnhost
	@cd test/kubernetes && go test -vet=off -c -trimpath -ldflags '-s -w' -o ../../bin/kubernetes/e2e.test k8s.io/kubernetes/test/e2e
	@go test -tags containers -count=1 -v -timeout 90m -run '^TestKubernetes$$' ./test/containers -args \
		-kubernetes.focus='$(KUBERNETES_FOCUS)' -kubernetes.skip='$(KUBERNETES_SKIP)'

.PHONY: screenshots
screenshots: build ## Take the screenshots of the console in docs/img, in Debian's Chromium, which it installs.
	@test/install test/browser
	@timeout --kill-after=15s 6m go test -tags browser -count=1 -timeout 5m -run '^TestScreenshots$$' ./test/browser -screenshots "$(CURDIR)/docs/img"

WORST ?= 0

.PHONY: house
house: ## Measure names, functions, comments and errors of the code; WORST=20 lists examples.
	@go run ./tools/house -worst $(WORST) .

HISTORY_STEPS ?= 1000000

.PHONY: nightly
nightly: race ## Run make race, and random histories for HISTORY_STEPS steps, a million, from new seeds: pools and claims, sets with policies and gates, and fleets. Then try random install-configs.
	go test -run Histories -timeout 120m -v ./internal/controller/clusterpool -history.steps=$(HISTORY_STEPS)
	go test -run Histories -timeout 120m -v ./test/history -history.steps=$(HISTORY_STEPS)
	go test -run Histories -timeout 120m -v ./internal/fleet/scaling -scaling.seed=0 -scaling.steps=$(HISTORY_STEPS)
	go test -timeout 60m ./internal/install/config -config.rounds=50000

RECIPE_HISTORIES ?= 10000

.PHONY: recipe-histories
recipe-histories: ## Run RECIPE_HISTORIES random lives of clusters of a recipe, 10,000, with programs and hotspare killed at any moment.
	go test -run RandomHistories -count=1 -timeout 120m -v ./internal/install/exec -history.runs=$(RECIPE_HISTORIES)

.PHONY: test-recipes
test-recipes: ## Test the shipped recipes with each step of each tool killed, with faults in each recipe, and with Terraform itself if it is installed.
	go test -count=1 -timeout 60m ./recipes -recipes.exhaustive

.PHONY: recipe-table
recipe-table: ## Run the conformance suite on the shipped recipes, and write the results to docs/recipes/README.md.
	go test -count=1 -run TestShippedRecipes ./recipes -recipes.update

RECIPE      ?= kubernetes-processes
RECIPE_WITH ?= workers=1

.PHONY: real-clusters
real-clusters: build ## Create real clusters with RECIPE, kubernetes-processes, as root: a pool that serves a claim, kill -9 of hotspare, the conformance suite.
	go test -tags realclusters -count=1 -timeout 60m -v ./test/recipes -recipe ../../recipes/$(RECIPE) -with $(RECIPE_WITH)

FLIPS ?= 200

.PHONY: flips
flips: build ## Hibernate and resume local clusters FLIPS times, 200, at random moments.
	go test -run TestFlips -timeout 120m -v ./test/e2e -flips=$(FLIPS)

.PHONY: bench
bench: build ## Measure speed and memory, and print a table.
	go run ./test/bench --binary bin/hotspare

.PHONY: sizing-table
sizing-table: ## Replay the traces of SIZING_TRACES, a directory of CSV files, and synthetic ones, and print the table of docs/sizing.md.
	go run ./test/sizing $(if $(SIZING_TRACES),--traces $(SIZING_TRACES)) --set $(or $(SIZING_SET),base)

.PHONY: sizing-ablation
sizing-ablation: ## Print what leaving out each part of the method changes, the table of ADR 0029.
	go run ./test/sizing $(if $(SIZING_TRACES),--traces $(SIZING_TRACES)) --ablation

.PHONY: download
download: ## Download the Go modules that the build, its tools and the tests need.
	@go list -deps -test ./... >/dev/null
	@cd test/hivetypes && go list -deps -test ./... >/dev/null
	@cd tools/modules && go list -deps . >/dev/null
	@cd tools/controller-gen && go list -deps sigs.k8s.io/controller-tools/cmd/controller-gen >/dev/null
	@cd tools/golangci-lint && go list -deps github.com/golangci/golangci-lint/v2/cmd/golangci-lint >/dev/null
	@cd tools/helm && go list -deps helm.sh/helm/v3/cmd/helm >/dev/null

bin/controller-gen: tools/controller-gen/go.mod
	@cd tools/controller-gen && go build -o ../../bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen

bin/golangci-lint: tools/golangci-lint/go.mod
	@cd tools/golangci-lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/helm: tools/helm/go.mod
	@cd tools/helm && go build -ldflags '-s -w' -o ../../bin/helm helm.sh/helm/v3/cmd/helm

bin/govulncheck: tools/govulncheck/go.mod
	@cd tools/govulncheck && go build -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck

bin/modules: tools/modules/go.mod $(wildcard tools/modules/*.go)
	@cd tools/modules && go build -o ../../bin/modules .

# What of the chart is not in other files of config already.
RENDERED := account metrics manager limits

.PHONY: chart
chart: bin/helm ## Bring the generated manifests into the chart, and what it renders into config/manager.
	@rm -rf charts/hotspare/files
	@mkdir -p charts/hotspare/files/rbac
	@cp -R config/crd config/admission charts/hotspare/files/
	@cp config/rbac/role.yaml config/rbac/pool-admin.yaml charts/hotspare/files/rbac/
	@bin/helm lint --strict --quiet --kube-version $(KUBE_VERSION) charts/hotspare
	@bin/helm lint --strict --quiet --kube-version $(KUBE_VERSION) --set dashboards.enabled=true,alerts.enabled=true,console.enabled=true charts/hotspare
	@{ echo '# Rendered from charts/hotspare: see make chart.'; \
		bin/helm template hotspare charts/hotspare --namespace hotspare-system --kube-version $(KUBE_VERSION) $(RENDERED:%=--show-only templates/%.yaml); \
	} > config/manager/manager.yaml

.PHONY: generate
generate: bin/controller-gen ## Regenerate deep copies, CRDs, RBAC, the chart, and what pages tell of power states, platforms, fields and rights.
	@bin/controller-gen object paths=./api/...
	@bin/controller-gen crd:maxDescLen=300 paths=./api/... output:crd:dir=config/crd
	@go run ./tools/hivefields tools/hivefields/fields.txt config/crd
	@bin/controller-gen rbac:roleName=hotspare-manager paths="./internal/controller/...;./internal/install/job/...;./internal/recipe/runner/jobs/...;./internal/install/capi/...;./internal/cloud/capi/..." output:rbac:dir=config/rbac
	@$(MAKE) --no-print-directory chart
	@go test ./internal/power -run TestThePageOfStates -update
	@go test ./internal/cloud/cloudtest -run TestThePageOfPlatforms -update
	@go test ./test/docs -run 'TestTheFieldsOfKindPages|TestTheScriptInFilesOfCISystems' -update
	@go test ./config -run TestThePageOfRights -update
	@go test ./test/trust -run TestThePageOfTrust -update

.PHONY: fmt
fmt: bin/golangci-lint ## Format the code (gofumpt).
	@bin/golangci-lint fmt

.PHONY: lint
lint: bin/golangci-lint ## Lint the code.
	@bin/golangci-lint run

.PHONY: modules
modules: bin/modules ## Check what is linked: checksums, licences, and vulnerabilities of a list that is here.
	@cd tools/modules && go test ./...
	@go mod verify
	@bin/modules ./cmd/...

# A database of vulnerabilities, as vuln.go.dev serves it: an address, or file:// and a folder.
VULNDB ?= https://vuln.go.dev

.PHONY: vulnerabilities
vulnerabilities: bin/govulncheck ## Ask VULNDB, vuln.go.dev or a mirror of it, for vulnerabilities of what is linked.
	@bin/govulncheck -db $(VULNDB) -scan package ./cmd/...

.PHONY: verify
verify: generate lint modules ## Check generated files, formatting, lint, module files and what is linked.
	@bin/golangci-lint fmt --diff
	@go mod tidy -diff
	@git diff --exit-code -- api config charts templates docs/ci/task.yaml docs/power-states.md docs/platforms/README.md docs/kinds docs/operate/rights.md docs/operate/trust.md || { echo "generated files are stale: run 'make generate' and commit the result"; exit 1; }

SYSTEMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: release
release: ## Build dist: static programs for SYSTEMS, what each is made of, the chart, checksums.
	@rm -rf dist
	@$(MAKE) --no-print-directory programs
	@$(MAKE) --no-print-directory checksums

.PHONY: programs
programs: ## Build the programs of a release for SYSTEMS, beside what is in dist already.
	@mkdir -p dist
	@set -e; for system in $(SYSTEMS); do for program in hotspare hotspare-manager; do \
		to=dist/$$program-$${system/\//-}; echo "building $$to"; \
		GOOS=$${system%/*} GOARCH=$${system#*/} $(BUILD) -trimpath -o $$to ./cmd/$$program; \
		go run ./tools/sbom $$to $(VERSION) > $$to.cdx.json; \
	done; done

.PHONY: checksums
checksums: bin/helm ## Add the chart and checksums to dist, and show what is there.
	@bin/helm package charts/hotspare --app-version $(VERSION) --destination dist >/dev/null
	@cd dist && rm -f SHA256SUMS && sha256sum * > SHA256SUMS
	@cd dist && du -h -L --apparent-size *

IMAGE          ?= hotspare.io/hotspare-manager:$(VERSION)
AGENT_IMAGE    ?= hotspare.io/hotspare:$(VERSION)
ARCH           ?= $(shell go env GOARCH)
CONTAINER_TOOL ?= podman
CERTIFICATES   ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: image
image: ## Build the images of hotspare-manager, IMAGE, and of agents, AGENT_IMAGE, with CONTAINER_TOOL.
	@mkdir -p dist && cp $(CERTIFICATES) dist/ca-certificates.crt
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o dist/hotspare-manager-linux-$(ARCH) ./cmd/hotspare-manager
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o dist/hotspare-linux-$(ARCH) ./cmd/hotspare
	@$(CONTAINER_TOOL) build -f Containerfile --target manager --build-arg TARGETARCH=$(ARCH) -t $(IMAGE) .
	@$(CONTAINER_TOOL) build -f Containerfile --target agent --build-arg TARGETARCH=$(ARCH) -t $(AGENT_IMAGE) .

.PHONY: clean
clean: ## Remove what was built.
	@rm -rf bin dist
