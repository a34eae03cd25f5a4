"""An environment as an OpenEnv package: models, client, and the server that `traceroom serve --openenv` runs too."""
