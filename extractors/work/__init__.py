"""The work that people of a company did, from what the exports of its apps hold.

`events`: the acts that the exports show. `items`: which of them belong to one piece of work.
"""
