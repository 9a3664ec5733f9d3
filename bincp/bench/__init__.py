"""Throughput of certificates: how many bounds a second, beside the expression that one would write.

What is measured is the lower bound of each built-in operator, one probability at a time and for an
array of them. The yardstick is the straightforward NumPy or SciPy expression for the same bound,
which rounds to nearest where a certificate rounds to the safe side.
"""

from bincp.bench._cases import CASES, Case
from bincp.bench._measure import Throughput, measure

__all__ = ["CASES", "Case", "Throughput", "measure"]
