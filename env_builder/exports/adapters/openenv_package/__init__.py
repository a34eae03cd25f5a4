"""An exported environment as an OpenEnv package: its models, its client, and in `server` the environment itself."""
