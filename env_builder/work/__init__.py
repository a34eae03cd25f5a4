"""Tasks of the work that people of a company really did, across its apps."""
