# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
"""Noise in Triton kernels, for CUDA; equal to csrc/noise to the bit, with the names used there.

A program makes the elements of BLOCK counters of one row, four of each. Words that come from
outside, of seeds and tables, are the bits of an int32.

Nothing is fused to multiply-add: noise in floats would have other bits. Square roots and quotients
in float32 are those that are correctly rounded, which must be asked for.
"""

import torch
import triton
import triton.language as tl

from bincp._core import _noise

BLOCK = 256
_GROUP = 64
_COUNTERS = 16  # of a group

GAUSSIAN = tl.constexpr(_noise.GAUSSIAN)
LAPLACE = tl.constexpr(_noise.LAPLACE)
SQRT_HALF = tl.constexpr(0x3F3504F3)

# What changes from call to call, and is no reason to compile again.
_VARIABLES = ["n_rows", "d", "blocks", "k0", "k1", "stream", "half", "grid"]


def add_float_noise(law, scale, keys, x, out):
    """Write the inputs ``x[keys.rows[0]]`` plus noise to ``out`` (rows, d) of their dtype."""
    launch(_float_noise, keys, x, out, scale, LAW=law)


def add_grid_noise(entry, low, half, grid, keys, points, out):
    """Write ``(points[keys.rows[0]] + noise) / grid`` to ``out``; the table is in int32."""
    bits = len(entry).bit_length() - 1
    launch(_grid_noise, keys, points, out, entry, low, half, grid, BITS=bits)


def launch(kernel, keys, x, out, *parameters, **options):
    """Run a kernel over rows of the device that holds them."""
    n_rows, d = out.shape
    counters = -(-d // _GROUP) * _COUNTERS
    blocks = -(-counters // BLOCK)
    key = _signed(keys.seed & 0xFFFFFFFF), _signed(keys.seed >> 32), keys.stream
    grid = (n_rows * blocks,)
    with torch.cuda.device_of(out):
        kernel[grid](
            *(x, out, keys.rows, n_rows, d, blocks),
            *key,
            *parameters,
            BLOCK=BLOCK,
            enable_fp_fusion=False,
            **options,
        )


def _signed(word):
    return word - (word >> 31 << 32)


@triton.jit
def _place(blocks, BLOCK: tl.constexpr):
    """Return the row of this program, and its counters."""
    program = tl.program_id(0)
    counters = (program % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return (program // blocks).to(tl.int64), counters


@triton.jit
def _elements(counters, part: tl.constexpr):
    """Return the elements that word `part` of each counter is for."""
    return counters // 16 * 64 + counters % 16 + part * 16


@triton.jit
def _words(rows, row, n_rows, counters, k0, k1, stream):
    """Return the four words of each counter of a row."""
    id = tl.load(rows + n_rows + row)  # noqa: A001
    draw = tl.load(rows + 2 * n_rows + row)
    c0 = counters.to(tl.uint32)
    zero = c0 ^ c0
    c1 = zero + draw.to(tl.uint32)
    c2 = zero + id.to(tl.uint32)
    c3 = zero + ((id >> 32) | (stream << 24)).to(tl.uint32)
    return tl.philox_impl(c0, c1, c2, c3, zero + k0.to(tl.uint32), zero + k1.to(tl.uint32))


# ---- noise in floats (csrc/noise/laws.c) ---------------------------------------------------------


@triton.jit
def _bits(value):
    return value.to(tl.uint32, bitcast=True)


@triton.jit
def _float(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _low_part(w):
    return (w & 0xFFFF).to(tl.float32) + 0.5


@triton.jit
def _centred(w):
    return (w >> 16).to(tl.float32) * 65536.0 + _low_part(w)


@triton.jit
def _log_unit(u):
    shifted = _bits(u) + (0x3F800000 - SQRT_HALF)
    e = ((shifted >> 23).to(tl.int32) - 127).to(tl.float32)
    x = _float((shifted & 0x007FFFFF) + SQRT_HALF) - 1.0
    z = x * x
    y = x * 7.0376836292e-2 - 1.1514610310e-1
    y = y * x + 1.1676998740e-1
    y = y * x - 1.2420140846e-1
    y = y * x + 1.4249322787e-1
    y = y * x - 1.6668057665e-1
    y = y * x + 2.0000714765e-1
    y = y * x - 2.4999993993e-1
    y = y * x + 3.3333331174e-1
    y = y * x * z
    y = y + e * -2.12194440e-4
    y = y - 0.5 * z
    return (x + y) + e * 0.693359375


@triton.jit
def _box_muller(radius_word, angle_word):
    radius = tl.sqrt_rn(_log_unit(_centred(radius_word) * (1.0 / 4294967296.0)) * -2.0)
    quadrant = (angle_word + 0x20000000) >> 30
    rest = (angle_word - (quadrant << 30)).to(tl.int32, bitcast=True)
    t = rest.to(tl.float32) * 1.4629180792671596e-9
    z = t * t
    sine = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * t + t
    cosine = (z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2
    cosine = cosine * z * z - 0.5 * z + 1.0
    odd = (quadrant & 1) != 0
    along = _bits(tl.where(odd, sine, cosine)) ^ (((quadrant + 1) & 2) << 30)
    across = _bits(tl.where(odd, cosine, sine)) ^ ((quadrant & 2) << 30)
    return radius * _float(along), radius * _float(across)


@triton.jit
def _laplace(w):
    sign = w & 0x80000000
    magnitude = -_log_unit(_centred(w ^ sign) * (1.0 / 2147483648.0))
    return _float(_bits(magnitude) ^ sign)


@triton.jit
def _symmetric(w):
    high = (((w ^ 0x80000000) >> 16).to(tl.int32) - 32768).to(tl.float32)
    return (high * 65536.0 + _low_part(w)) * (1.0 / 2147483648.0)


@triton.jit
def _add(x, out, source, row, d, elements, noise):
    here = elements < d
    noisy = tl.load(x + source * d + elements, mask=here) + noise.to(x.dtype.element_ty)
    tl.store(out + row * d + elements, noisy, mask=here)


@triton.jit(do_not_specialize=_VARIABLES)
def _float_noise(
    x, out, rows, n_rows, d, blocks, k0, k1, stream, scale, LAW: tl.constexpr, BLOCK: tl.constexpr
):
    row, counters = _place(blocks, BLOCK)
    source = tl.load(rows + row)
    w0, w1, w2, w3 = _words(rows, row, n_rows, counters, k0, k1, stream)
    if LAW == GAUSSIAN:
        z0, z1 = _box_muller(w0, w1)
        z2, z3 = _box_muller(w2, w3)
    elif LAW == LAPLACE:
        z0, z1, z2, z3 = _laplace(w0), _laplace(w1), _laplace(w2), _laplace(w3)
    else:
        z0, z1, z2, z3 = _symmetric(w0), _symmetric(w1), _symmetric(w2), _symmetric(w3)
    _add(x, out, source, row, d, _elements(counters, 0), scale * z0)
    _add(x, out, source, row, d, _elements(counters, 1), scale * z1)
    _add(x, out, source, row, d, _elements(counters, 2), scale * z2)
    _add(x, out, source, row, d, _elements(counters, 3), scale * z3)


# ---- integer noise (csrc/noise/grid.c) -----------------------------------------------------------


@triton.jit
def _drawn(w, entry, mask):
    """Return the column that a word draws, if no tie is left to settle."""
    e = _bits(tl.load(entry + (w & mask)))
    return tl.minimum(w, e) & mask, (w ^ e) <= mask


@triton.jit
def _settled(q, tie, w, a, b, c, entry, low, mask):
    """Return the column that a word draws, with three more words where it is a tie."""
    column = w & mask
    other = _bits(tl.load(entry + column)) & mask
    first = _bits(tl.load(low + 3 * column))
    second = _bits(tl.load(low + 3 * column + 1))
    third = _bits(tl.load(low + 3 * column + 2))
    less = (b < second) | ((b == second) & (c < third))
    less = (a < first) | ((a == first) & less)
    return tl.where(tie, tl.where(less, column, other), q)


@triton.jit
def _put(points, out, source, row, d, elements, q, half, grid):
    here = elements < d
    k = tl.load(points + source * d + elements, mask=here, other=0).to(tl.int32)
    total = k + q.to(tl.int32) - half
    if out.dtype.element_ty == tl.float64:
        noisy = total.to(tl.float64) / grid.to(tl.float64)
    else:
        noisy = tl.div_rn(total.to(tl.float32), grid.to(tl.float32))
    tl.store(out + row * d + elements, noisy, mask=here)


@triton.jit(do_not_specialize=_VARIABLES)
def _grid_noise(
    points, out, rows, n_rows, d, blocks, k0, k1, stream, entry, low, half, grid,
    BITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    mask: tl.constexpr = (1 << BITS) - 1
    row, counters = _place(blocks, BLOCK)
    source = tl.load(rows + row)
    w0, w1, w2, w3 = _words(rows, row, n_rows, counters, k0, k1, stream)
    q0, t0 = _drawn(w0, entry, mask)
    q1, t1 = _drawn(w1, entry, mask)
    q2, t2 = _drawn(w2, entry, mask)
    q3, t3 = _drawn(w3, entry, mask)
    if tl.max((t0 | t1 | t2 | t3).to(tl.int32), axis=0) > 0:
        a0, a1, a2, a3 = _words(rows, row, n_rows, counters, k0, k1, stream | 0x40)
        b0, b1, b2, b3 = _words(rows, row, n_rows, counters, k0, k1, stream | 0x80)
        c0, c1, c2, c3 = _words(rows, row, n_rows, counters, k0, k1, stream | 0xC0)
        q0 = _settled(q0, t0, w0, a0, b0, c0, entry, low, mask)
        q1 = _settled(q1, t1, w1, a1, b1, c1, entry, low, mask)
        q2 = _settled(q2, t2, w2, a2, b2, c2, entry, low, mask)
        q3 = _settled(q3, t3, w3, a3, b3, c3, entry, low, mask)
    _put(points, out, source, row, d, _elements(counters, 0), q0, half, grid)
    _put(points, out, source, row, d, _elements(counters, 1), q1, half, grid)
    _put(points, out, source, row, d, _elements(counters, 2), q2, half, grid)
    _put(points, out, source, row, d, _elements(counters, 3), q3, half, grid)
