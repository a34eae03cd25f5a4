"""Releases: what a build publishes, immutable and addressed by its content (docs/releases.md).

    places.py       where a registry lies: a folder, or a bucket that speaks S3
    registry.py     releases in it: put, promote, verify, fetch, pin, withdraw
    collecting.py   what may go, by policy
    making.py       a build's directories and figures to a release
    comparing.py    two releases: what came, what went, what moved and why
"""
