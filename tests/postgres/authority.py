"""A private certificate authority, made for a test."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates; its own is `certificate`, a PEM file in `folder`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._signed(name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *names: str, days: int = 1) -> tuple[Path, Path]:
        """A certificate for the common name `name` and the host names or addresses `names`, and its key; PEM files."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts: list[x509.GeneralName] = []
        for host in names:
            address = host.replace(".", "").isdecimal()
            hosts.append(x509.IPAddress(ipaddress.ip_address(host)) if address else x509.DNSName(host))
        made = self._signed(name, key, *([x509.SubjectAlternativeName(hosts)] if hosts else []), days=days)
        certificate, secret = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        secret.chmod(0o600)
        return certificate, secret

    def _signed(
        self, name: str, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType, days: int = 1
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + days * _DAY)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())
