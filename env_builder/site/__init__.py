"""The kind `site`, at build time: what a web site's recorded pages have in common, induced from the pages.

Pages are parsed to trees (`parsing`), templates are learnt of them (`shapes`, `filling`), and each place of a template learns
which source gives its value (`learning`, which writes the files). `env_builder.runtime.site.model` answers out of these files.
"""
