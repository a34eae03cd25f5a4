"""Products that people work in, implemented: each module is an app of the kind `office` (apps/office.py)."""
