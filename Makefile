# Tasks for this repository. They need make and Python 3.10 to 3.13, nothing else.
#
# Environments are created from locks with hashes. Stamp files prevent a second installation: .made for the empty
# environment, .run for the package and its dependencies, .dev for the development tools.

.DEFAULT_GOAL := help

VENV := .venv
# TensorFlow 2.10 with the DirectML plugin. It exists for Python 3.10 on x86-64 only.
VENV2 := .venv-directml
# Reads profiler traces in a test. It exists for Linux on x86-64 only.
XPROF := .venv-xprof
# TensorFlow with CUDA, for a machine with an NVIDIA GPU.
CUDA := .venv-cuda
TOOLS := .venv-tools

# Below the names of the environments, because make expands this line where it stands.
.PHONY: help demo test test-all test-cluster check docs format schema dashboards lock images sbom chart bench gpu-acceptance clean $(VENV2) $(XPROF)

# The first of these interpreters that runs, is supported and can create environments. A version manager's shim may fail at
# any of these.
ifeq ($(origin PYTHON),undefined)
CANDIDATES := python3.13 python3.12 python3.11 python3.10 python3
else
CANDIDATES := $(PYTHON)
endif
FIND := for python in $(CANDIDATES); do "$$python" -c "import sys, venv, ensurepip; \
	sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))" 2>/dev/null && echo "$$python" && break; done
FIND2 := [ "$$(uname -sm)" = "Linux x86_64" ] && for python in $(PYTHON310) python3.10 \
	"$$(pyenv root 2>/dev/null || echo ~/.pyenv)"/versions/3.10*/bin/python3.10; do "$$python" -c "import sys, venv, \
	ensurepip; sys.exit(sys.version_info[:2] != (3, 10))" 2>/dev/null && echo "$$python" && break; done

# Only wheels, because a build from source would download build tools that are not in a lock.
PIP := -m pip --quiet --disable-pip-version-check --no-input install
LOCKED := $(PIP) --only-binary :all: --require-hashes
PACKAGE := $(PIP) --no-deps --no-build-isolation --editable .
PYTEST := -m pytest --durations=25 --durations-min=5 $(if $(STRICT),--strict-skips) $(if $(DEFER),--defer-long $(DEFER))
GROUPED := --dist loadgroup --no-loadscope-reorder
PARALLEL := -n logical --maxprocesses 4 $(GROUPED)
# Folders of tests. Those that take longest come first, so that many short tests fill the end.
FIRST := tests/images tests/integration
REST := $(sort $(filter-out $(FIRST) tests/cluster,$(patsubst %/,%,$(dir $(wildcard tests/*/test_*.py)))))
# The tests of the chart. CI names those that need no cluster.
CLUSTER := tests/cluster
# Programs in benchmarks/, with an argument after a slash. They take several hours in all.
BENCHMARKS := startup images inside forked observer scripts scrape noise verdicts prior projection projection/apart scale hub chart explain changes/gate workers

BACKENDS := $(basename $(notdir $(wildcard bench/backends/[a-z]*.py)))
COMPILE := $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1: /'

demo: $(VENV)/.run ## measure the article's CIFAR-10 training on this machine's CPU
	$(VENV)/bin/devbench run cifar --backend cpu

test: $(VENV)/.dev $(VENV2) ## run all unit tests, and the essential tests of each real part (at most 12 minutes)
	@failed=0; \
	if [ -f $(VENV2)/.dev ]; then \
		echo "# TensorFlow 2.10 with the DirectML plugin: essential tests"; \
		$(VENV2)/bin/python $(PYTEST) tests/integration $(PARALLEL) -m "essential and not once" || failed=1; \
	fi; \
	echo "# TensorFlow 2.21: essential tests"; \
	$(VENV)/bin/python $(PYTEST) tests/integration $(REST) $(PARALLEL) -m "essential and not variant" || failed=1; \
	echo "# Tests that were left out, per file:"; \
	$(VENV)/bin/python -m pytest $(FIRST) $(filter-out tests/unit,$(REST)) $(CLUSTER) --collect-only -qq \
		-m "variant or not essential"; \
	echo "# make test-all runs everything."; \
	exit $$failed

# All parts run even if one fails. Tests marked `quiet` run apart from the others, two files at a time.
test-all: $(VENV)/.dev $(VENV2) $(XPROF) ## run every test that this machine can run (STRICT=1: avoidable skips fail; DEFER=7: less often than weekly)
	@failed=0; \
	if [ -f $(VENV2)/.dev ]; then \
		echo "# TensorFlow 2.10 with the DirectML plugin: all tests except those marked once"; \
		$(VENV2)/bin/python $(PYTEST) $(FIRST) $(REST) $(PARALLEL) -m "not once and not quiet" || failed=1; \
	fi; \
	echo "# TensorFlow 2.21: all tests"; \
	$(VENV)/bin/python $(PYTEST) tests/integration -n 2 $(GROUPED) -m quiet || failed=1; \
	$(VENV)/bin/python $(PYTEST) $(FIRST) $(REST) $(PARALLEL) -m "not quiet" || failed=1; \
	$(VENV)/bin/python $(PYTEST) $(CLUSTER) || failed=1; \
	exit $$failed

test-cluster: $(VENV)/.dev ## test the chart on a control plane and a real node, which are built from Go first
	$(VENV)/bin/python tests/cluster/programs.py --real-node
	$(VENV)/bin/python $(PYTEST) $(CLUSTER)

check: $(VENV)/.dev ## check lint, format, types (Linux, Windows, macOS), imports and generated files
	@failed=0; try() { echo "# $$*"; "$(VENV)/bin/$$@" || failed=1; }; \
	try ruff check; \
	try ruff format --check; \
	echo "# mypy --platform linux, win32 and darwin"; \
	printf '%s\n' linux win32 darwin | xargs -P 3 -I% sh -c 'output=$$($(VENV)/bin/mypy --platform % \
		--cache-dir .mypy_cache/% 2>&1); code=$$?; echo "%: $$output"; exit $$code' || failed=1; \
	try lint-imports; \
	try python -m charts.source --check; \
	try python -m docs --check; \
	echo "# bench/model/schema.json is up to date (if not: make schema)"; \
	$(VENV)/bin/python -m bench.model.schema | diff bench/model/schema.json - || failed=1; \
	exit $$failed

format: $(VENV)/.dev ## format the code
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

schema: $(VENV)/.run ## regenerate the JSON Schema of results
	$(VENV)/bin/python -m bench.model.schema >bench/model/schema.json

docs: $(VENV)/.dev ## regenerate the generated parts of the documentation
	$(VENV)/bin/python -m docs

dashboards: $(VENV)/.dev ## regenerate the Grafana dashboards (needs Python 3.11 or newer)
	$(VENV)/bin/python -m dashboards

lock: $(TOOLS)/.made ## regenerate the locks from pyproject.toml (UPGRADE=1: newest versions)
	$(COMPILE) pyproject.toml --extra cpu --extra report --output-file images/cpu.lock
	for backend in $(filter-out cpu,$(BACKENDS)); do \
		$(COMPILE) pyproject.toml --extra $$backend --output-file images/$$backend.lock || exit 1; done
	$(COMPILE) pyproject.toml --extra hub --constraint images/cpu.lock --output-file images/hub.lock
	$(COMPILE) --group dev --constraint images/cpu.lock --constraint images/hub.lock --output-file images/dev.lock
	$(COMPILE) --group test --constraint images/directml.lock --output-file images/dev-directml.lock
	$(COMPILE) --group xprof --output-file images/xprof.lock
	$(COMPILE) --group build --output-file images/build.lock
	$(COMPILE) --group lock --output-file images/tools.lock

images: ## build the container images (IMAGES="cpu cuda" ENGINE=docker BASE_IMAGE=…)
	images/build $(IMAGES)

sbom: $(VENV)/.dev ## write the bill of materials of each built image to dist/ (IMAGES="cpu hub")
	$(VENV)/bin/python images/sbom.py $(IMAGES)

chart: ## package the Helm chart in dist/ (OCI=oci://REGISTRY/PATH pushes it)
	@command -v helm >/dev/null || { echo >&2 "helm is not on the path. To build it with Go:"; \
		echo >&2 "go install helm.sh/helm/v4/cmd/helm@v4.3.1"; exit 1; }
	rm -f dist/devbench-*.tgz
	helm package charts/devbench --destination dist
	$(if $(OCI),helm push $(OCI_OPTIONS) dist/devbench-*.tgz $(OCI))

bench: $(VENV)/.dev ## run the programs behind the figures in benchmarks/README.md
	@for program in $(BENCHMARKS); do \
		set -- $$(echo $$program | tr / ' '); echo "# $$*"; $(VENV)/bin/python -m "benchmarks.$$1" $$2 || exit 1; \
	done

gpu-acceptance: $(CUDA)/.run ## run, judge and pack docs/gpu-acceptance.md on a machine with an NVIDIA GPU (at most 25 minutes)
	$(CUDA)/bin/python -m benchmarks.gpu_acceptance $(ARGUMENTS)

clean: ## remove environments and caches, but not results
	rm -rf $(VENV) $(VENV2) $(XPROF) $(CUDA) $(TOOLS) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find bench tests benchmarks dashboards docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made $(CUDA)/.made $(TOOLS)/.bare $(XPROF)/.bare:
	@python=$$($(FIND)); [ -n "$$python" ] || { echo >&2 "devbench needs Python 3.10 to 3.13 with its venv module."; \
		echo >&2 "None of these works: $(CANDIDATES). Install one (Debian: apt install python3-venv),"; \
		echo >&2 "or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }; \
	echo "# making $(@D) with $$python"; "$$python" -m venv --clear $(@D)
	@touch $@

$(VENV)/.run: images/cpu.lock images/build.lock pyproject.toml $(VENV)/.made
	@echo "# installing TensorFlow 2.21 and what devbench needs (about 400 MB, once)"
	$(VENV)/bin/python $(LOCKED) -r images/build.lock -r images/cpu.lock
	$(VENV)/bin/python $(PACKAGE)
	@touch $@

$(CUDA)/.run: images/cuda.lock images/build.lock pyproject.toml $(CUDA)/.made
	@echo "# installing TensorFlow 2.21 with CUDA (about 3.4 GB, once)"
	$(CUDA)/bin/python $(LOCKED) -r images/build.lock -r images/cuda.lock
	$(CUDA)/bin/python $(PACKAGE)
	@touch $@

$(VENV)/.dev: images/hub.lock images/dev.lock $(VENV)/.run
	$(VENV)/bin/python $(LOCKED) -r images/hub.lock -r images/dev.lock
	@touch $@

# Environments that exist on some machines only.
$(VENV2):
	@python=$$($(FIND2)); if [ -n "$$python" ]; then $(MAKE) --no-print-directory $@/.dev PYTHON310="$$python"; else \
		echo "# No Python 3.10 on x86-64 Linux: tests with TensorFlow 2.10 are left out. One way: pyenv install 3.10"; fi

$(XPROF):
	@[ "$$(uname -sm)" != "Linux x86_64" ] || $(MAKE) --no-print-directory $@/.made

# The rule above sets PYTHON310.
$(VENV2)/.made:
	@echo "# making $(@D) with $(PYTHON310)"
	@"$(PYTHON310)" -m venv --clear $(@D)
	@touch $@

$(VENV2)/.dev: images/directml.lock images/dev-directml.lock images/build.lock pyproject.toml $(VENV2)/.made
	@echo "# installing TensorFlow 2.10 with the DirectML plugin (about 400 MB, once)"
	$(VENV2)/bin/python $(LOCKED) -r images/build.lock -r images/directml.lock -r images/dev-directml.lock
	$(VENV2)/bin/python $(PACKAGE)
	@touch $@

$(TOOLS)/.made: images/tools.lock $(TOOLS)/.bare
	$(TOOLS)/bin/python $(LOCKED) -r images/tools.lock
	@touch $@

$(XPROF)/.made: images/xprof.lock $(XPROF)/.bare
	@echo "# installing xprof, which reads profiler traces (about 350 MB, once)"
	$(XPROF)/bin/python $(LOCKED) -r images/xprof.lock
	@touch $@
