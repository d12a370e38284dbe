"""Connected regions of a label map, with the points and boxes that prompt SAM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True)
class Regions:
    """The regions of one class, in the order of their first pixels.

    Attributes:
        label: The class.
        map: (h, w) int32 number of the region that a pixel belongs to, -1 outside of all regions.
        points: (n, 2) x and y of the pixel with the highest score in each region.
        boxes: (n, 4) first and last column and row of each region: left, top, right, bottom.
    """

    label: int
    map: np.ndarray
    points: np.ndarray
    boxes: np.ndarray


def find_regions(labels: np.ndarray, scores: np.ndarray, minimal_area: int) -> Iterator[Regions]:
    """Finds the regions of every class in a label map.

    Args:
        labels: (h, w) class of each pixel, negative for none.
        scores: (h, w) score of that class.
        minimal_area: Regions of fewer pixels are dropped.
    """
    for label in np.unique(labels[labels >= 0]).tolist():
        found = _regions_of(label, labels == label, scores, minimal_area)
        if len(found.points):
            yield found


def _regions_of(label: int, mask: np.ndarray, score: np.ndarray, minimal_area: int) -> Regions:
    """Finds the 8-connected regions of a boolean (h, w) mask."""
    # This algorithm numbers regions by their first pixel, row by row; the default one by blocks of four pixels.
    _, components, stats, _ = cv2.connectedComponentsWithStatsWithAlgorithm(
        mask.astype(np.uint8), connectivity=8, ltype=cv2.CV_32S, ccltype=cv2.CCL_WU
    )
    kept = [c for c in range(1, len(stats)) if stats[c, cv2.CC_STAT_AREA] >= minimal_area]
    number = np.full(len(stats), -1, np.int32)
    number[kept] = np.arange(len(kept))
    points, boxes = np.empty((len(kept), 2), int), np.empty((len(kept), 4), int)
    for index, component in enumerate(kept):
        left, top, width, height = stats[component, : cv2.CC_STAT_AREA]
        area = (slice(top, top + height), slice(left, left + width))
        peak = np.where(components[area] == component, score[area], -np.inf).argmax()
        points[index] = left + peak % width, top + peak // width
        boxes[index] = left, top, left + width - 1, top + height - 1
    return Regions(label, number[components], points, boxes)
