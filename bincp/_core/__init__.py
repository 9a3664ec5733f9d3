"""The compiled modules, their types for Cython and for type checkers, and the errors they raise.

Nothing here imports any other part of bincp. The public functions over these kernels check their
arguments; the kernels trust them. C and Cython code from outside reaches them through
``bincp/bincp.h`` and ``from bincp cimport ...``, whose names stay when files move.
"""
