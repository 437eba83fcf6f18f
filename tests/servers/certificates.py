"""Certificates for servers on loopback: of an authority of our own, and all that is wrong with certificates."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Certificates:
    """`authority` is a PEM file; `good`, `expired`, `early`, `other_host`, `self_signed` are a server's side of TLS."""

    authority: Path
    sides: dict[str, ssl.SSLContext]
    self_signed: Path


def make_certificates(folder: Path) -> Certificates:
    """Make them all; takes some milliseconds."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    here = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]

    def made(name: str, names: list[Any], begins: Any, ends: Any, signer: Any = None, ca: bool = False) -> Any:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer, signing = (subject, key) if signer is None else (signer[0].subject, signer[1])
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = built.sign(signing, hashes.SHA256())
        pem = folder / f"{name}.pem"
        pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
        return certificate, key

    def side(name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        return context

    authority = made("authority", [], now - 9 * day, now + 9 * day, ca=True)
    made("good", here, now - day, now + day, authority)
    made("expired", here, now - 3 * day, now - day, authority)
    made("early", here, now + day, now + 3 * day, authority)
    made("other_host", [x509.DNSName("elsewhere.example")], now - day, now + day, authority)
    made("self_signed", here, now - day, now + day)
    sides = {name: side(name) for name in ("good", "expired", "early", "other_host", "self_signed")}
    return Certificates(folder / "authority.pem", sides, folder / "self_signed.pem")
