"""Lines of JSON-RPC: read so that no two readers differ about them, and written."""
