"""The kind `site`, in the making: what a web site's recorded pages have in common, induced from the pages.

It has pages as trees (`trees`), routes (`routes`) and templates of pages (`shapes`). It does not have yet: what gives each
place its value, forms as writes, and the app that answers requests. No environment holds a site so far.
"""
