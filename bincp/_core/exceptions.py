"""The errors that compiled modules raise."""


class CertificateError(ValueError):
    """No certificate is registered for a pair, or an operator breaks the law of certificates."""


class CertificateABIError(ImportError):
    """Compiled code was built for another version of `bincp/bincp.h` than the one installed."""
