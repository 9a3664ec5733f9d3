"""Checks for those who write certificates of their own."""

from bincp.certificates import Certificate, as_certificate, check_law

__all__ = ["check_certificate"]


def check_certificate(certificate: Certificate) -> None:
    """Check that a certificate obeys the law that every guarantee rests on.

    At some hundred probabilities, irregular ones among them, that reach 1e-12 into both tails: both
    maps stay in [0, 1] and do not decrease, ``lower(p) <= p <= upper(p)``, and ``upper(p) >= q``
    holds exactly where ``p >= lower(q)`` does, all up to a rounding of 1e-9.

    Parameters
    ----------
    certificate : Certificate
        For instance what :func:`bincp.certify` returns for a pair that you registered.

    Raises
    ------
    CertificateError
        If the law is broken; the message names the probabilities where it is.
    TypeError
        If it is not a `Certificate`.

    Notes
    -----
    The check cannot see that `lower` is no higher than what an adversary can do: that needs a
    proof. Nor can it see a fault between its points. Calibration with the mixture correction
    looks again: it refuses a certificate that falls by more than 1e-9 where it is evaluated.

    Examples
    --------
    >>> import bincp
    >>> check_certificate(bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.2)))
    """
    check_law(as_certificate(certificate))
