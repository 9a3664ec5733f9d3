"""The built-in operators: one factory for each pair of smoothing scheme and ball.

A factory turns parameters into the constants of a compiled operator. Each constant is rounded so
that the bounds can only become wider. Importing a module of this package registers its factories.
"""

from bincp.certificates._builtins import (  # noqa: F401
    ablation,
    additive,
    anisotropic,
    flips,
    hierarchical,
    radial,
    splitting,
    transformations,
    words,
)
