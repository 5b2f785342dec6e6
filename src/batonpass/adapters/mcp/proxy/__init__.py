"""The proxy: between one client and one server, every call judged and recorded."""
