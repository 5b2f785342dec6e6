"""The relay of a program whose ledger is elsewhere: the same names, against a control plane (`batonpass serve`)."""

from batonpass.client.remote_relay import RemoteRelay

__all__ = ["RemoteRelay"]
