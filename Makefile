# What a developer types. Each target does all of its own set-up, and little when nothing changed.
#   make            build                  make test [T=word]    all tests, or those named so
#   make setup      .venv and the build    make test-all         slow tests and all modes too
#   make demo       the fork/wait demo     make bench [B=word]   figures, as ratios to a peer
#   make lint       format, tidy, types    make ir               rewrite the golden IR files
#   make asan tsan ubsan                   make size docs        reports and generated pages

PYTHON ?= python3.11
JOBS ?= $(shell nproc)
VENV := .venv
BUILD := build/dev
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# The package is imported from its sources, with the module that the build puts there: what is run
# below was built just before, so that no import need look again.
export PYTHONPATH := $(CURDIR)/python
export SKBUILD_EDITABLE_SKIP := $(CURDIR)/$(BUILD)
CCACHE := $(shell command -v ccache)
ifneq ($(CCACHE),)
  export CMAKE_C_COMPILER_LAUNCHER := $(CCACHE)
  export CMAKE_CXX_COMPILER_LAUNCHER := $(CCACHE)
endif

.PHONY: all setup build demo test test-all bench lint format ir asan tsan ubsan size docs clean
all: build

# Tools and build requirements, at the versions that pyproject.toml pins.
$(VENV)/.packages: pyproject.toml tools/requirements.py tools/system_packages.sh
	tools/system_packages.sh
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check \
	  $$($(PYTHON) tools/requirements.py build test lint)
	touch $@

# The editable install configures $(BUILD), which `build` goes on with: one tree of objects for both.
$(VENV)/.editable: $(VENV)/.packages
	$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e . \
	  -C build-dir=$(BUILD) -C editable.rebuild=true -C editable.verbose=false \
	  -C cmake.define.PRONG_TESTS=ON -C cmake.define.PRONG_INPLACE=ON
	touch $@

setup: $(VENV)/.editable
	@if [ -d .git ]; then $(VENV)/bin/pre-commit install >/dev/null || \
	  echo "make setup: pre-commit is not installed as a hook (see above); make lint does its work"; fi

build: $(VENV)/.editable
	@cmake --build $(BUILD) -j $(JOBS) --target _core $(CPP_TARGETS)

# Only the targets that run C++ programs build them.
test test-all ir: CPP_TARGETS := prong_tests
bench: CPP_TARGETS := prong_benches
demo: build
	$(PY) examples/demo.py

test: build
	@$(PY) tools/run_tests.py --build $(BUILD) --jobs $(JOBS) $(if $(T),--only '$(T)')

test-all: build
	@$(PY) tools/run_tests.py --build $(BUILD) --jobs $(JOBS) --all $(if $(T),--only '$(T)')

bench: build
	@$(PY) tools/run_bench.py --build $(BUILD) $(if $(B),--only '$(B)')

# Rewrites the golden files under tests/ir; git diff shows what changed, for a person to judge.
ir: build
	@PRONG_UPDATE_GOLDEN=1 $(PY) tools/run_tests.py --build $(BUILD) --jobs $(JOBS) --only ir
	@git --no-pager diff --stat -- tests

lint: build
	@$(PY) tools/lint.py --build $(BUILD)

format: $(VENV)/.packages
	@$(PY) tools/lint.py --fix

asan: $(VENV)/.packages
	@$(PY) tools/sanitize.py address --jobs $(JOBS) $(if $(T),--only '$(T)')

tsan: $(VENV)/.packages
	@$(PY) tools/sanitize.py thread --jobs $(JOBS) $(if $(T),--only '$(T)')

ubsan: $(VENV)/.packages
	@$(PY) tools/sanitize.py undefined --jobs $(JOBS) $(if $(T),--only '$(T)')

size: build
	@$(PY) tools/size.py --build $(BUILD)

docs: build
	@$(PY) tools/docs.py && $(PY) tools/stubs.py

clean:
	rm -rf build
