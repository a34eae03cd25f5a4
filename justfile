# What developers type often; CONTRIBUTING.md tells the rest. `just` alone lists these.

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

# format and mend what ruff can mend
format:
    .venv/bin/python -m ruff check --fix .

# write requirements.lock anew from pyproject.toml, and from both the image's (needs uv)
lock:
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
        --extra dev pyproject.toml -o requirements.lock
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
        --extra production --extra s3 --constraint requirements.lock pyproject.toml -o deploy/requirements.lock

# does the lock hold on the other platforms and Pythons? (needs uv and an index)
lock-check:
    #!/usr/bin/env bash
    set -euo pipefail
    for platform in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin; do
        for version in 3.11 3.12 3.13; do
            echo "$platform $version"
            uv pip install --quiet --dry-run --require-hashes --only-binary :all: --python-platform "$platform" \
                --python-version "$version" --target "$(mktemp -d)" -r requirements.lock
        done
    done

# write docs/reference anew from the code
reference:
    .venv/bin/python -m pipelines.reference

# run every consumer of exports in an interpreter of its own, and write the table of docs/consumers.md (NAME…: only these)
consumers *names:
    .venv/bin/python -m tests.consumers.table {{names}}
