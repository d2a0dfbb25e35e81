# Everything sets itself up: a virtual environment in .venv with the versions in constraints.txt, and on Debian the
# system's libraries. The second call finds all of it in place.

PYTHON := .venv/bin/python
NO_DISPLAY := 'There is no display here to open a window on (DISPLAY and WAYLAND_DISPLAY are not set); in the terminal, \
	`make setup && .venv/bin/octavo ask "What is this about?" --file paper.pdf` does the same job.'

.NOTPARALLEL:
.PHONY: help run setup test check bench bundle lock clean \
	needs-display needs-python needs-window needs-tests needs-bundle

help:
	@echo "make run      open the window; sets up what is needed and fetches a small model the first time"
	@echo "make setup    the same without the window, for octavo ask and the other terminal commands"
	@echo "make test     all tests, on a virtual display where they need one"
	@echo "make check    format, lint, types, import rules and the fast tests"
	@echo "make bench    speed against mlx-lm as installed"
	@echo "make bundle   build dist/octavo, a folder that runs without Python, and try it"
	@echo "make lock     renew constraints.txt and packaging/THIRD_PARTY.md"
	@echo "make clean    remove what make has made, .venv included"

run: needs-display needs-window setup
	@$(PYTHON) -m app

setup: needs-python .venv/octavo
	@$(PYTHON) -m app models get starter

test: needs-tests .venv/octavo-dev
	$(PYTHON) -m pytest

check: needs-window .venv/octavo-dev
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	$(PYTHON) -m pytest -m "not slow"

bench: setup
	$(PYTHON) -m app bench decode

bundle: needs-bundle .venv/octavo-bundle
	$(PYTHON) -m PyInstaller --noconfirm --log-level WARN --distpath dist --workpath build/bundle packaging/octavo.spec
	$(PYTHON) -m pytest -m bundle tests/packaging

needs-display:
	@[ "$$(uname -s)" != Linux ] || [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || { echo $(NO_DISPLAY) >&2; exit 1; }

needs-python:
	@packaging/system-libraries.sh python

needs-window:
	@packaging/system-libraries.sh python window

needs-tests:
	@packaging/system-libraries.sh python window display

needs-bundle:
	@packaging/system-libraries.sh python window display bundle

.venv/octavo .venv/octavo-dev .venv/octavo-bundle: pyproject.toml constraints.txt
	@packaging/environment.sh $(groups)
	@touch $@

.venv/octavo: groups :=
.venv/octavo-dev: groups := dev
.venv/octavo-bundle: groups := dev bundle

lock: needs-python
	@[ -x build/lock/bin/uv ] || { "$$(packaging/find-python.sh)" -m venv build/lock && build/lock/bin/pip install --quiet uv; }
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-emit-index-url \
		--custom-compile-command "make lock" --output-file constraints.txt \
		pyproject.toml --group dev --group build --group bundle
	@$(MAKE) --no-print-directory .venv/octavo
	$(PYTHON) packaging/third_party.py > packaging/THIRD_PARTY.md

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
