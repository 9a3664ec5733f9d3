"""The directory of the C header of the installed package."""

from pathlib import Path

__all__ = ["get_include"]


def get_include() -> str:
    """Return the directory of ``bincp/bincp.h``, for the include path of an extension.

    Returns
    -------
    str
        Directory that holds ``bincp/bincp.h``.

    Examples
    --------
    >>> import os, bincp
    >>> os.path.exists(os.path.join(bincp.get_include(), "bincp", "bincp.h"))
    True
    """
    return str(Path(__file__).parents[1] / "include")
