# The commands people and CI run. `make setup` builds the environment; everything else uses it.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready
export COUNTERPOISE_DATA ?= ../shared/data

.PHONY: setup demo test check bench clean
setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "counterpoise needs $(PYTHON): install it, or name another, as in 'make setup PYTHON=python3.12'."; exit 2; }
	@$(PYTHON) -m venv .venv || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: apt-get install python3.11-venv)."; exit 2; }
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	@$(BIN)/counterpoise init runs/demo/study.toml --force
	@$(BIN)/counterpoise run runs/demo/study.toml --out runs/demo

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --durations=10

check: $(READY)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv runs
