"""The policy file `batonpass.toml`, read so that every error names its line."""
