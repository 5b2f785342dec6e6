"""The main job in a few seconds: record, verify, seal, tamper, and show what is found."""
