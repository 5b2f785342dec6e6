"""The formats of an export."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """The formats in which a tree can be exported."""

    BUNDLE = "bundle"  # our own: it can be verified elsewhere
    DSSE = "dsse"  # in-toto statements in DSSE envelopes, one a line
    CLOUDEVENTS = "cloudevents"  # an event for each receipt, one a line
    OTLP = "otlp"  # spans of OpenTelemetry, a batch a line
    PROV = "prov"  # one document of PROV-JSON
