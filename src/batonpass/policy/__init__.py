"""The policy as people write it: `batonpass.toml`, read with the lines where everything stands."""
