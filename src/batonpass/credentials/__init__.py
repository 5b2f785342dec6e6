"""Credentials: whose a secret is, where it comes from, and that it goes nowhere else."""

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
