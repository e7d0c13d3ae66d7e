"""The certificate and key of https: tested separately, so that connections keep the old ones until both are good."""

from __future__ import annotations

import ssl

from mcp_batteries.errors import Invalid, Unavailable, describe_os_error, quote

__all__ = ["insecure_context", "load", "validate_pair"]


def validate_pair(certificate: str, key: str) -> None:
    """Let OpenSSL read both PEM files.

    Raises:
        Unavailable: One of them cannot be read.
        Invalid: They are not a certificate and a key, do not belong together, or the key has a password.
    """
    _read_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)


def load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Use both for future connections.

    It raises as `validate_pair` does, and then nothing has changed.
    """
    # With a certificate that is not the key's, OpenSSL drops the key that it has, and no handshake succeeds any more.
    validate_pair(certificate, key)
    _read_into(context, certificate, key)


def insecure_context() -> ssl.SSLContext:
    """Return a context for this machine's own requests, because a certificate does not cover the loopback address."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _read_into(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load both files into `context`."""
    for file in (certificate, key):
        _check_readable(file)
    has_password = False

    def password() -> str:
        # Without this OpenSSL asks whoever sits at the terminal.
        nonlocal has_password
        has_password = True
        return ""

    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as problem:
        if has_password:
            raise Invalid(
                "The key has a password.", "Take it away: `openssl pkey -in key.pem -out plain.pem`."
            ) from None
        if problem.reason == "KEY_VALUES_MISMATCH":
            raise Invalid(
                "The certificate belongs to another key.", "Give --tls-certificate and --tls-key of one order."
            ) from None
        raise Invalid(
            f"{quote(certificate)} and {quote(key)} are not a certificate and its key.",
            "--tls-certificate takes the chain, the server's own first, and --tls-key its key, both as PEM.",
        ) from None


def _check_readable(file: str) -> None:
    try:
        with open(file, "rb"):
            pass
    except OSError as problem:
        raise Unavailable(
            f"{quote(file)} cannot be read: {describe_os_error(problem)}.", "Let the server's user read both PEM files."
        ) from None
