"""Certificate authorities and what they sign, made anew for each run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: Of the real clock, which is libpq's, too.
_NOW = datetime.now(UTC)
_YEAR = timedelta(days=365)


class Authority:
    """One who signs. `pem` is its certificate."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        made = _certificate(self._name, self._key, ends=_NOW + _YEAR).issuer_name(self._name)
        self._certificate = made.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def file(self, folder: Path, *others: Authority) -> Path:
        """A file with the certificates of these others, and with its own behind them."""
        path = folder / "authorities.pem"
        path.write_bytes(b"".join(one.pem for one in (*others, self)))
        return path

    def sign(self, host: str, *, ended: bool = False) -> tuple[bytes, bytes]:
        """Certificate and key of a server at `host`, which may have ended yesterday."""
        key = ec.generate_private_key(ec.SECP256R1())
        ends = _NOW - timedelta(days=1) if ended else _NOW + _YEAR
        signed = (
            _certificate(_named(host), key, ends=ends)
            .issuer_name(self._name)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return signed.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - _YEAR)
        .not_valid_after(ends)
    )
