"""Lines of JSON-RPC: reading them so that no two readers disagree about them, and writing them."""
