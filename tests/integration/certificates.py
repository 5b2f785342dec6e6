"""Certificates for servers of the tests, made in a moment and valid for an hour."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(folder: Path, *names: str, by: tuple[Path, Path] | None = None) -> tuple[Path, Path]:
    """Write a certificate of these names, and its key. Return both files.

    `by` is the certificate and the key of who vouches for it; without one it vouches for itself.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    issuer, signed_by = (named, key) if by is None else _read(*by)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=0 if by is None else None), critical=True)
        .sign(signed_by, hashes.SHA256())
    )
    certificate, secret = folder / f"{names[0]}.pem", folder / f"{names[0]}.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, secret


def _read(certificate: Path, key: Path) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    opened = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(opened, ec.EllipticCurvePrivateKey)
    return x509.load_pem_x509_certificate(certificate.read_bytes()).subject, opened
