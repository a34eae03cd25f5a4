# What developers type often; see CONTRIBUTING.md for the rest. `just` alone lists these.

default:
    @just --list

# the main job on the sample
run:
    ./traceroom run tests/logs/airline --out out

# lint, types, tests (add --all for the slow ones)
test *arguments:
    ./test {{arguments}}

# everything, as on a clean machine (root on Debian)
ci:
    .ci/run

# format, and fix what ruff can fix
format:
    .venv/bin/python -m ruff check --fix .

# write the locks from pyproject.toml: tests, commands, and the image's (needs uv)
lock:
    #!/usr/bin/env bash
    set -euo pipefail
    compile="uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links"
    $compile --extra dev pyproject.toml -o requirements-dev.lock
    $compile --extra build --constraint requirements-dev.lock pyproject.toml -o requirements.lock
    $compile --extra production --extra s3 --constraint requirements-dev.lock pyproject.toml -o deploy/requirements.lock

# does the lock hold on the other platforms and Pythons? (needs uv and an index)
lock-check:
    #!/usr/bin/env bash
    set -euo pipefail
    for platform in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin; do
        for version in 3.11 3.12 3.13; do
            echo "$platform $version"
            uv pip install --quiet --dry-run --require-hashes --only-binary :all: --python-platform "$platform" \
                --python-version "$version" --target "$(mktemp -d)" -r requirements-dev.lock
        done
    done

# write docs/reference from the code
reference:
    .venv/bin/python -m pipelines.reference

# run every consumer of exports in an interpreter of its own, and write the table of docs/consumers.md (NAME…: only these)
consumers *names:
    .venv/bin/python -m tests.consumers.table {{names}}
