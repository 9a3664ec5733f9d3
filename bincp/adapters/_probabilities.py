"""Probabilities as logits, for arrays and for tensors."""

from typing import Any

import numpy as np

from bincp._utils.arrays import is_tensor, where

_SUM_TOLERANCE = 1e-2
"""How far probabilities of 16 bits may be from adding up to 1; logits and sigmoids are further."""


def log_probabilities(p: Any) -> Any:
    """Return the logarithms of probabilities (b, K), an array or a tensor; 0 becomes -inf.

    16 bits are widened, as `bincp.sampling` does with logits.
    """
    if is_tensor(p):
        p = p if p.element_size() == 8 else p.float()
        bad = ~((p >= 0) & (p <= 1)).all(-1) | ~((p.sum(-1) - 1).abs() <= _SUM_TOLERANCE)
        rows = bad.detach().cpu().numpy()
    else:
        p = p if p.itemsize == 8 else p.astype(np.float32, copy=False)
        rows = ~((p >= 0) & (p <= 1)).all(-1) | ~(np.abs(p.sum(-1) - 1) <= _SUM_TOLERANCE)
    if rows.any():
        raise ValueError(
            "`model` must return probabilities, in [0, 1] and of sum 1 over the labels (or say "
            f"outputs='logits'), got {p[int(np.argmax(rows))].tolist()} {where(rows)}"
        )
    if is_tensor(p):
        return p.log()
    with np.errstate(divide="ignore"):
        return np.log(p)
