# The environment of a Firnline project, for its Makefile to include: `setup`, and what it stands on.
#
# `setup` needs nothing but make and a Python: uv, the locked environment, the jars and (as root, with apt) Java follow from it.
# No file here names a package registry: pip, uv, apt and Ivy use the machine's own settings. FIRNLINE, set by the Makefile before,
# is what `uv pip install` is given for Firnline itself.

.DEFAULT_GOAL := help
.PHONY: help setup again
SHELL := bash

UV_VERSION := 0.13.7
# Any uv will do: the lock's hashes decide what is installed. Without one, the pinned version goes into the work folder.
UV := $(or $(shell command -v uv 2>/dev/null),.firnline/uv/bin/uv)
# 3.11 first, since that is what is measured and locked against.
PYTHONS := python3.11 python3.12 python3
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))
BIN := .venv/bin
TARGETS := $(lastword $(MAKEFILE_LIST)) $(firstword $(MAKEFILE_LIST))
# What happens to be active in the shell must not take the place of our environment.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
# Images for containers often forbid Python to keep what it compiles. Then every process compiles Airflow, PySpark and pandas again.
unexport PYTHONDONTWRITEBYTECODE

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(TARGETS)

setup: .venv/.ready ## Make the environment in .venv, fetch the jars, check every prerequisite
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; \
	 $(BIN)/firnline doctor --mend > "$$report" || { cat "$$report"; exit 1; }

# The stamp comes last: an interrupted or failed set-up starts again, and so does one whose Firnline is another than is asked for now.
# Firnline itself is built without isolation, by the hatchling of the lock, so that nothing else is ever installed whose hash is not in
# requirements.lock.
.venv/.ready: pyproject.toml requirements.lock | $(UV)
	@$(BIN)/python -c '$(SUITABLE)' 2>/dev/null || { \
	   rm -rf .venv; found=; \
	   for python in $(PYTHONS); do \
	     if $$python -c '$(SUITABLE)' 2>/dev/null; then found=$$($$python -c 'import sys; print(sys.executable)'); break; fi; \
	   done; \
	   echo "· environment: .venv, $${found:-with a Python that uv fetches}"; \
	   if [ -n "$$found" ]; then $(UV) venv --quiet --python "$$found" .venv; \
	   else $(UV) venv --quiet --python 3.11 .venv 2>/dev/null || { rm -rf .venv; \
	     echo "Firnline needs Python 3.11 or 3.12: install python3.11 or python3.12, then run this again." >&2; exit 1; }; fi; \
	 }
	@echo "· packages: as locked, $$(grep -c '^[a-z0-9].*==' requirements.lock) of them, hashes checked"
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(FIRNLINE)
	@printf '%s\n' $(FIRNLINE) > $@

ifneq ($(shell cat .venv/.ready 2>/dev/null),$(shell printf '%s\n' $(FIRNLINE)))
.venv/.ready: again
endif

# A venv and `pip --target` leave uv at the same place. Debian's python3 may have neither until python3-venv is installed.
.firnline/uv/bin/uv:
	@echo "· uv $(UV_VERSION)"
	@mkdir -p .firnline; rm -rf .firnline/uv; \
	 python=$$(for one in $(PYTHONS); do if $$one -c '' 2>/dev/null; then echo $$one; break; fi; done); \
	 [ -n "$$python" ] || { echo "Firnline needs Python 3.11 or 3.12: install python3, then run this again." >&2; exit 1; }; \
	 with_venv() { $$python -m venv .firnline/uv && .firnline/uv/bin/python -m pip install --quiet uv==$(UV_VERSION); }; \
	 with_pip() { rm -rf .firnline/uv; $$python -m pip install --quiet --target .firnline/uv uv==$(UV_VERSION); }; \
	 with_apt() { [ "$$(id -u)" = 0 ] && command -v apt-get && export DEBIAN_FRONTEND=noninteractive && \
	   apt-get -qq update && apt-get -qq install -y python3-venv && python=/usr/bin/python3 && rm -rf .firnline/uv && with_venv; }; \
	 { with_venv || with_pip || with_apt; } > .firnline/uv.log 2>&1 && rm .firnline/uv.log || { \
	   tail -3 .firnline/uv.log >&2; rm -rf .firnline/uv .firnline/uv.log; \
	   echo "uv could not be installed: install uv, or Python's venv or pip (Debian: python3-venv), then run this again." >&2; exit 1; }
