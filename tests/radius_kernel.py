"""The radii of Box-Muller words by Triton's code, for `radius_words.py`."""

import torch
import triton
import triton.language as tl

from bincp.noise._device._triton import _box_muller


@triton.jit
def _radii(words, out, n, BLOCK: tl.constexpr):
    here = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words + here, mask=here < n, other=0).to(tl.uint32)
    radius, _ = _box_muller(word, word ^ word)
    tl.store(out + here, radius, mask=here < n)


def radii(words: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(words), dtype=torch.float32, device=words.device)
    grid = (-(-len(words) // 1024),)
    _radii[grid](words, out, len(words), BLOCK=1024, enable_fp_fusion=False)
    return out
