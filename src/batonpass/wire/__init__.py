"""The byte formats: values become canonical bytes that are signed and kept, and are read back."""
