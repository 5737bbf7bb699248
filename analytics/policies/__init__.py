"""The packaged policies, one TOML file each."""
