"""Triton kernels: from low-resolution scores to the best class of every pixel in one launch, and to anchors in another.

Compiled by Triton when they first run, for the GPU at hand. ``fused.py`` decides when they are used; the eager path
computes the same. A program decides a tile of pixels and looks at one class after the other, so that nothing of size
C x H x W exists. It mixes K source rows with the weights of each pixel row; columns are of full width already.
"""

from __future__ import annotations

import triton
import triton.language as tl

# The lowest float32: a first value that any score beats, and that leaves no NaN in a difference.
_LOWEST = tl.constexpr(-3.4028234663852886e38)
# Arguments that images differ in: a kernel for every kind of number (1, multiples of 16) would be compiled all day. Not
# the width, whose multiples of 16 make loads wider.
_SIZES = ('num_classes', 'height', 'score_rows', 'cosine_rows', 'grid_rows', 'grid_columns')


@triton.jit
def probe_kernel(out):
    """Writes a one: to see whether kernels can be compiled and run here."""
    tl.store(out, 1.0)


@triton.jit
def _mixed(values, index, weight, channel, height, width, y, x, inside, K: tl.constexpr):
    """The value of a channel at a tile of pixels: K rows of (channels, height, width) values, mixed."""
    start = values + channel * height * width
    out = tl.zeros(inside.shape, tl.float32)
    for k in tl.static_range(K):
        row = tl.load(index + y * K + k)
        share = tl.load(weight + y * K + k)
        out += tl.load(start + row * width + x, mask=inside, other=0.0) * share
    return out


@triton.jit
def _class_score(
    scores, index, weight, first, last, height, width, y, x, inside, top, total, K: tl.constexpr, TOTAL: tl.constexpr
):
    """The best query of a class at a tile, and the running sum of exp over all queries, with its maximum."""
    best = tl.full(inside.shape, float('-inf'), tl.float32)
    for query in range(first, last):
        value = _mixed(scores, index, weight, query, height, width, y, x, inside, K)
        best = tl.maximum(best, value, propagate_nan=tl.PropagateNan.ALL)
        if TOTAL:
            higher = tl.maximum(top, value)
            total = total * tl.exp(top - higher) + tl.exp(value - higher)
            top = higher
    return best, top, total


@triton.jit
def _leader(value, label, best, winner, total, TOTAL: tl.constexpr):
    """The best class so far, after another one: what max() gives, the first of equals and the first NaN."""
    better = (value > best) | ((value != value) & (best == best))
    after = tl.where(better, value, best)
    if TOTAL:
        total = total * tl.exp(best - after) + tl.exp(value - after)
    return after, tl.where(better, label, winner), total


@triton.jit(do_not_specialize=_SIZES)
def decode_kernel(
    scores,  # (Q, R, W) float32
    score_index,  # (H, K) int32 source rows of each pixel row
    score_weight,  # (H, K) float32
    starts,  # (C + 1,) int32 first query of each class
    cosines,  # (n, h, W) float32 products with the prototypes
    cosine_index,  # (H, L) int32
    cosine_weight,  # (H, L) float32
    covered,  # (C,) int32 row of a class among the products, -1 for none
    scale,  # (H, W) float32 beta / norm
    host_struck,  # (C,) int8 classes that the host may not choose
    added_struck,  # (C,) int8
    host_label,  # outputs, (H, W) each
    host_best,
    host_total,
    added_label,
    added_best,
    added_total,
    mass,
    num_classes,
    height,
    width,
    score_rows,
    cosine_rows,
    K: tl.constexpr,
    L: tl.constexpr,
    HOST: tl.constexpr,
    ADDED: tl.constexpr,
    TOTALS: tl.constexpr,
    MASS: tl.constexpr,
    STRUCK: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    y = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    x = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (y < height) & (x < width)
    place = y * width + x
    y = tl.minimum(y, height - 1)
    zero = tl.zeros(inside.shape, tl.float32)
    h_best, h_label, h_total = zero + _LOWEST, tl.zeros(inside.shape, tl.int32), zero
    a_best, a_label, a_total = zero + _LOWEST, tl.zeros(inside.shape, tl.int32), zero
    top, queries = zero + _LOWEST, zero
    if ADDED:
        factor = tl.load(scale + place, mask=inside, other=0.0)
    for label in range(num_classes):
        first, last = tl.load(starts + label), tl.load(starts + label + 1)
        value, top, queries = _class_score(
            scores, score_index, score_weight, first, last, score_rows, width, y, x, inside, top, queries, K, MASS
        )
        if ADDED:
            row, sum_ = tl.load(covered + label), value
            if row >= 0:
                sum_ += factor * _mixed(cosines, cosine_index, cosine_weight, row, cosine_rows, width, y, x, inside, L)
            if STRUCK:
                sum_ = tl.where(tl.load(added_struck + label) != 0, float('-inf'), sum_)
            a_best, a_label, a_total = _leader(sum_, label, a_best, a_label, a_total, TOTALS)
        if HOST or MASS:
            if STRUCK:
                value = tl.where(tl.load(host_struck + label) != 0, float('-inf'), value)
            h_best, h_label, h_total = _leader(value, label, h_best, h_label, h_total, TOTALS)
    if HOST:
        tl.store(host_label + place, h_label.to(host_label.dtype.element_ty), mask=inside)
        tl.store(host_best + place, h_best, mask=inside)
        if TOTALS:
            tl.store(host_total + place, h_total, mask=inside)
    if ADDED:
        tl.store(added_label + place, a_label.to(added_label.dtype.element_ty), mask=inside)
        tl.store(added_best + place, a_best, mask=inside)
        if TOTALS:
            tl.store(added_total + place, a_total, mask=inside)
    if MASS:
        tl.store(mass + place, h_total / queries, mask=inside)


@triton.jit(do_not_specialize=_SIZES)
def anchor_kernel(
    scores,  # as for decode_kernel
    score_index,
    score_weight,
    starts,
    row_index,  # (H, 2) int32 patch rows of each pixel row
    row_weight,  # (H, 2) float64
    column_index,  # (W, 2) int32
    column_weight,  # (W, 2) float64
    weights,  # (C, h, w) float64, added to
    counts,  # (C,) int32, added to
    tau,
    num_classes,
    height,
    width,
    score_rows,
    grid_rows,
    grid_columns,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    y = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    x = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (y < height) & (x < width)
    y, x = tl.minimum(y, height - 1), tl.minimum(x, width - 1)
    zero = tl.zeros(inside.shape, tl.float32)
    best, winner, total = zero + _LOWEST, tl.zeros(inside.shape, tl.int32), zero
    for label in range(num_classes):
        first, last = tl.load(starts + label), tl.load(starts + label + 1)
        value, _, _ = _class_score(
            scores, score_index, score_weight, first, last, score_rows, width, y, x, inside, zero, zero, K, False
        )
        best, winner, total = _leader(value, label, best, winner, total, True)
    # A NaN exceeds nothing.
    anchor = inside & (1.0 / total > tau)
    tl.atomic_add(counts + winner, 1, mask=anchor)
    start = winner * grid_rows * grid_columns
    for i in tl.static_range(2):
        row, down = tl.load(row_index + y * 2 + i), tl.load(row_weight + y * 2 + i)
        for j in tl.static_range(2):
            column, across = tl.load(column_index + x * 2 + j), tl.load(column_weight + x * 2 + j)
            tl.atomic_add(weights + start + row * grid_columns + column, down * across, mask=anchor)
