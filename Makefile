# Needs make, sh, and on a Debian machine root for what is missing; `make help` lists the targets.
# PYTHON is the Python the virtual environment is made of. It must be one that all users of this machine can reach: the jobs of
# the demo and of the tests run as plain users.

PYTHON ?= /usr/bin/python3
BIN := .venv/bin
READY := .venv/ready
ROOT := $(filter 0,$(shell id -u))

# $(call packages,A B): install what is missing of these Debian packages; without root or apt, say which.
packages = missing=''; for p in $(1); do dpkg -s "$$p" >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then echo "missing:$$missing (as root on Debian this installs them)" >&2; exit 1; fi; \
		echo "installing:$$missing"; export DEBIAN_FRONTEND=noninteractive; \
		apt-get install -y -qq --no-install-recommends $$missing >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }; \
	fi

.PHONY: help demo test test-versions lint docs bench bench-placement bench-network bench-collect chaos clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## the whole of glaunch once, on a real 16-node Slurm that is started for it on this machine
	@$(BIN)/glaunch demo $(if $(YES),--yes)

test: $(READY) ## installs what is missing, then lint and every test, also those on a real Slurm and sshd (root); CI=true adds test-versions
ifneq ($(ROOT),)
	@$(call packages,git python3 python3-numpy python3-torch python3-mpi4py openmpi-bin shellcheck ibsim-utils opensm infiniband-diags chromium environment-modules)
	@$(BIN)/python -c 'from pathlib import Path; from glaunch.sandbox.packages import install, missing; \
		lacking = missing(Path("/"), accounting=True); lacking and install(lacking, yes=bool("$(YES)"))'
	@versions='$(filter true,$(CI))'; $(check)
else ifeq ($(CI),true)
	@echo "make test: CI=true and not root: the tests on a real Slurm cannot run, and none may be skipped" >&2; exit 1
else
	@echo "make test: not root: everything but the tests on a real Slurm and a real sshd" >&2
	@marks='-m not(slurm)and(not(sshd))'; $(check)
endif

# One go: all of them run, and one that fails fails the whole. FAILED_TESTS: the failed tests' names, said again as the last thing.
check = failed=''; export FAILED_TESTS="$$(mktemp)"; trap 'rm -f "$$FAILED_TESTS"' EXIT; \
	$(BIN)/ruff check . || failed="$$failed ruff-check"; \
	$(BIN)/ruff format --check . || failed="$$failed ruff-format"; \
	$(BIN)/mypy || failed="$$failed mypy"; \
	$(BIN)/python -m pytest -q -rsfE $${marks:+"$$marks"} || failed="$$failed pytest"; \
	[ -z "$$versions" ] || $(MAKE) --no-print-directory test-versions || failed="$$failed test-versions"; \
	if [ -n "$$failed" ]; then cat "$$FAILED_TESTS" >&2; echo "make test: failed:$$failed" >&2; exit 1; fi

test-versions: $(READY) ## the tests on a real Slurm, on Slurm 24.11 and 26.05, each in a Debian of its own (root); SLURM=26.05 for one of them
	@$(if $(ROOT),$(call packages,debootstrap iproute2 util-linux-extra),echo "make test-versions: needs root" >&2; exit 1)
	@PYTHON="$(abspath $(BIN))/python" tests/versions/run.sh $(SLURM)

lint: $(READY) ## ruff (check and format) and mypy --strict
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(READY) ## check the README and docs/: every command shown exists, every file and link is there
	@$(BIN)/python -m pytest -q tests/test_docs.py

bench: $(READY) ## start-up, planning, parsing, both gateways and fabrics, each beside what it should be compared with
	@failed=0; for it in start gateways fabric audit; do $(BIN)/python tests/bench/bench_$$it.py || failed=1; done; exit $$failed

bench-placement: $(READY) ## placement, beside others and a real slurmctld (root), at 1,024 to 102,400 nodes
	@$(BIN)/python tests/bench/bench_placement.py

bench-network: $(READY) ## an all-reduce over real links, on glaunch's nodes and order beside Slurm's and random ones (root)
	@$(BIN)/python tests/bench/bench_network.py

bench-collect: $(READY) ## collecting logs over SSH, beside scp -r (root)
	@$(BIN)/python tests/bench/bench_collect.py

chaos: $(READY) ## 50 races for nodes on a real Slurm: no pin stays, no job is lost, none runs twice (root)
	@GLAUNCH_RACES=50 $(BIN)/python -m pytest -q -rsfE tests/cluster/test_race.py

clean: ## remove what builds and tests leave (not .venv)
	@rm -rf build dist launcher/*.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# The checkout itself is what runs: `compat` puts launcher/ on the path, so that a changed file needs no new install.
$(READY): setup.cfg pyproject.toml
	@[ "$(PYTHON)" != /usr/bin/python3 ] || { $(call packages,python3 python3-venv); }
	@umask 022; [ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@umask 022; echo "installing glaunch and its tools into .venv"; \
		$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]' --config-settings editable_mode=compat
	@touch $@
