"""Certificates: how far an adversary can lower the probability that a score reaches tau.

============================  =================================================================
``_protocols``                the interfaces of operators and of pairs of bounds
``_certificate``              `Certificate`, which wraps an operator
``_registry``                 `certify`, `register`, `registered`: the look-up of operators
``_builtins``                 the factories of the built-in pairs of scheme and ball
``_python_operators``         operators made of Python functions
``_native_operators``         operators made of compiled functions from outside
``_regions``, ``_ratios``     operators made of likelihood-ratio regions
``_law``                      the check of the law that every certificate obeys
``_algebra``                  certificates made of certificates, such as `compose`
``_tradeoff``                 certificates from privacy
``_described``                a certificate made again from its description
``_curves``                   piecewise linear bounds one after the other, exactly
``_combined``                 their operators, compiled or in Python
``_facts``                    what they must know of their operands
``_masses``, ``_minorant``    operands as regions, also those that have none of their own
============================  =================================================================

`Certificate`, `certify`, `register` and `registered` are names of `bincp`, too. The functions that
make certificates out of certificates are public here alone, as ``bincp.certificates.compose``.
"""

from bincp.certificates import _builtins  # noqa: F401
from bincp.certificates._algebra import compose, hierarchical, mixture, product, repeat
from bincp.certificates._certificate import Certificate, as_certificate
from bincp.certificates._described import described
from bincp.certificates._law import check_law, check_rising
from bincp.certificates._registry import certify, load_entry_points, register, registered
from bincp.certificates._tradeoff import from_gdp, from_privacy, from_tradeoff

__all__ = [
    "Certificate",
    "as_certificate",
    "certify",
    "check_law",
    "check_rising",
    "compose",
    "described",
    "from_gdp",
    "from_privacy",
    "from_tradeoff",
    "hierarchical",
    "load_entry_points",
    "mixture",
    "product",
    "register",
    "registered",
    "repeat",
]
