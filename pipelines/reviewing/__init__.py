"""Reviews by people: which sessions to review next, what a reviewer is shown, and files to and from other programs.

Sees the published warehouse. Writes nothing but lines of `OUT/reviews.jsonl`, which the next run reads as an input.
"""
