"""Secrets for tools: where they come from, whose identity they carry, and how they are kept out of the record."""

from batonpass.credentials.port import Credential, CredentialRequest, Provider, Secret
from batonpass.credentials.providers import FromCommand, FromEnvironment, FromFile, FromKeyring
from batonpass.credentials.redaction import Redactor

__all__ = [
    "Credential",
    "CredentialRequest",
    "FromCommand",
    "FromEnvironment",
    "FromFile",
    "FromKeyring",
    "Provider",
    "Redactor",
    "Secret",
]
