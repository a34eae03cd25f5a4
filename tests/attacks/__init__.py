"""Attacks on real servers, processes and files, one a file: each is a test that fails without what keeps the attack out.

A file has `attack(folder, share)`, which returns a `Report`, and a test that runs it with a small share of its count.
`benchmarks/attacks.py` runs them all with their full counts.
"""
