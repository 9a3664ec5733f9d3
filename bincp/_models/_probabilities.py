"""Probabilities as logits, for arrays and for tensors."""

from typing import Any

import numpy as np

from bincp._utils.arrays import is_tensor, where
from bincp.scores import beyond_rounding

_SUM_TOLERANCE = 1e-2
"""How far a sum of probabilities may be from 1.

Probabilities of 16 bits are this far off, also where they were widened since. Rows of logits and of
sigmoids are further off.
"""


def log_probabilities(p: Any) -> Any:
    """Return the logarithms of probabilities (b, K), an array or a tensor; 0 becomes -inf.

    Numbers outside [0, 1] by rounding alone count as 0 or 1. Numbers of 16 bits are widened, as
    `bincp.sampling` does with logits.
    """
    off = beyond_rounding(p)  # in the dtype of the rounding
    if is_tensor(p):
        p = p if p.element_size() == 8 else p.float()
    else:
        p = p if p.itemsize == 8 else p.astype(np.float32, copy=False)
    # Written so that NaN fails.
    bad = off.any(-1) | ~(abs(p.sum(-1) - 1) <= _SUM_TOLERANCE)
    rows = bad.detach().cpu().numpy() if is_tensor(p) else bad
    if rows.any():
        raise ValueError(
            "`model` must return probabilities, in [0, 1] and of sum 1 over the labels (or say "
            f"outputs='logits'), got {p[int(np.argmax(rows))].tolist()} {where(rows)}"
        )
    if is_tensor(p):
        return p.clamp(0, 1).log()
    with np.errstate(divide="ignore"):
        return np.log(p.clip(0, 1))
