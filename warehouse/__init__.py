"""Ground floor: the types, the tables and the one door to DuckDB. Imports nothing of ours."""
