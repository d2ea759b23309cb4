"""Certificates for the faulty upstream: an authority of its own, and what it signed rightly and wrongly."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates; a client that trusts ``path`` accepts them."""

    path: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> Authority:
        """Make one, and write its certificate into the folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("capdex bench")
        made = (
            _builder(name, name, key, expired=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        path = folder / "authority.pem"
        path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return cls(path, made, key)

    def context(self, host: str = "127.0.0.1", *, expired: bool = False, own: bool = False) -> ssl.SSLContext:
        """Return a server's side of TLS.

        Args:
            host: Name or address that the certificate is for.
            expired: It ended yesterday.
            own: It is signed by itself.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(host)
        issuer, signer = (subject, key) if own else (self.certificate.subject, self.key)
        made = (
            _builder(subject, issuer, key, expired=expired)
            .add_extension(x509.SubjectAlternativeName([_general(host)]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        path = self.path.with_name(f"{made.serial_number}.pem")
        private = serialization.PrivateFormat.PKCS8
        pem = serialization.Encoding.PEM
        plain = serialization.NoEncryption()
        path.write_bytes(key.private_bytes(pem, private, plain) + made.public_bytes(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        path.unlink()
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, expired: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    end = now - _DAY if expired else now + _DAY
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(end - 3 * _DAY)
        .not_valid_after(end)
    )
