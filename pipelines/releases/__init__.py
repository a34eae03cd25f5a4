"""Releases: what a build publishes, immutable and addressed by its content (docs/releases.md).

    storage.py      a folder, or a prefix in a bucket: S3, Google Cloud Storage, Azure
    registry.py     releases in it: put, promote, verify, fetch, pin, withdraw, garbage collection
    comparing.py    two releases: tasks and figures that changed, and why
"""
