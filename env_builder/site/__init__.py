"""The kind `site`, in the making: what a web site's recorded pages have in common, induced from the pages.

It has pages as trees (`trees`), routes (`routes`), templates of pages (`shapes`), what stands in their places (`filling`) and
first sources of it (`sources`). It does not have yet: facts behind rows, effects of forms, places marked as unknown, and the
app that answers requests. No environment holds a site so far.
"""
