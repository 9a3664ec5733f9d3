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
``_combined``                 their operators, compiled or in Python
``_facts``, ``_masses``       what they must know of their operands
============================  =================================================================

`Certificate`, `certify`, `register` and `registered` are names of `bincp`, too. The functions that
make certificates out of certificates are public here alone, as ``bincp.certificates.compose``.
"""

from bincp.certificates import _builtins  # noqa: F401
from bincp.certificates._algebra import compose, hierarchical, repeat
from bincp.certificates._certificate import Certificate, as_certificate
from bincp.certificates._law import check_law, check_rising
from bincp.certificates._registry import certify, load_entry_points, register, registered

__all__ = [
    "Certificate",
    "as_certificate",
    "certify",
    "check_law",
    "check_rising",
    "compose",
    "hierarchical",
    "load_entry_points",
    "register",
    "registered",
    "repeat",
]
