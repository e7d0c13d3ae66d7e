# Verbs for people; each is one command that CI runs too.

# What you changed, checked and tested in under a minute.
quick *revision:
    uv run python tests/quick.py {{ revision }}

# Lint, types, import rules.
check:
    uv run ruff format --check
    uv run ruff check
    uv run pyright
    uv run lint-imports

# Every promise, in five minutes.
test *arguments:
    uv run pytest {{ arguments }}

# What that leaves out: all cases, storms, large sizes, other programs. CI runs both with every change.
slow *arguments:
    uv run pytest -m slow {{ arguments }}

# What is tried every week: all combinations, all servers, every recorded answer.
weekly *arguments:
    uv run pytest -m weekly {{ arguments }}

# Everything, and then which lines no test reached.
coverage *arguments:
    uv run coverage erase
    -uv run coverage run -m pytest -m "not (debian or weekly)" {{ arguments }}
    uv run coverage combine --quiet
    uv run python tests/coverage_table.py "pytest -m 'not (debian or weekly)'"
    uv run coverage report --skip-covered --sort=miss

# Regenerate README tables, snapshots, pages for hosts, manifests and registry entries.
docs:
    uv run python -m tools.docs servers/*
    PYTHONPATH=tests uv run python -m documents.figures
    PYTHONPATH=tests uv run python -m proofs.page
    PYTHONPATH=tests uv run python -m outside.page

# The documents as a site, in build/site.
site:
    uv run mkdocs build --strict

# Every server's image, and both compose files, built and tried.
images:
    uv run python -m docker.images
    uv run python -m docker.deployments

# Every suite on CPython for Windows, under Wine (Debian); prints a table.
windows *suites:
    uv run python tests/windows/leg.py {{ suites }}

# Every member beside its peers: one table of ratios, in a quarter of an hour.
bench *arguments:
    uv run python tests/benchmarks/small_calls.py {{ arguments }}

# Thousands of cases made by a seed: lists the proofs, or runs one, as `just prove git-twins 50 --seed 7`.
prove *arguments:
    cd tests && uv run python -m proofs {{ arguments }}

# Mistakes made on purpose, to see whether the tests notice; see tests/mutants/README.md.
mutants *arguments:
    uv run python tests/mutants/run.py --sample 20 {{ arguments }}

# Pages of the views, into the packages that carry them.
views:
    cd shared/views && npm ci && npm run check && npm run build

# The views in a browser (Chromium).
test-views:
    cd tests/e2e/views && npm ci && npm test

# A release, played through on this machine: an index of our wheels, install, upgrade, go back, bundles.
rehearse:
    uv run python -m tools.rehearsal

# Wheels of every member.
build:
    uv build --all-packages
