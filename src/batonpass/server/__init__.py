"""The control plane: one process with the doors that others come in by.

`control_plane` is shared by all doors: the relay, who may come in, the open runs. `app` puts the doors together:
the HTTP interface of this package, and whatever is mounted beside it. Every door translates; none decides. Needs the
extra `server`; only `app`, `boundary`, `event_stream` and `listener` import its packages.
"""
