"""From the maps of its windows to its scores, a host makes a GPU do little and never waits for it."""

from __future__ import annotations

import pytest
import torch

from tests.helpers.launches import fake_gpu, launches
from tests.helpers.zoo import ZOO, images
from tpa_mmseg.hosts.clip_host import CLIPHost
from tpa_mmseg.hosts.trident import Trident
from tpa_mmseg.hosts.windows import Cut

#: Operations per image from the windows' maps to the ScoreMap, the check for NaN included.
STITCHING = 10
#: Of hosts that refine the maps of windows first.
REFINING = {'MaskCLIP with refinements': 24}


@pytest.mark.parametrize('name', ZOO)
def test_stitching_takes_few_kernels_and_labels_no_wait(name):
    host = ZOO[name]()
    if not isinstance(host, CLIPHost) or isinstance(host, Trident):
        pytest.skip('its scores are not stitched from windows')
    (cut,) = host.cut(images((48, 64)))
    with torch.no_grad():
        shapes = [found.shape for found in host.score_windows([cut.windows])[0]]
    with fake_gpu(), torch.no_grad():
        maps = [torch.empty(shape, device='cuda') for shape in shapes]
        fake = Cut(torch.empty(cut.image.shape, device='cuda'), None, [])
        names = launches(lambda: host.score_maps_of([fake], [maps]))
        assert names.total() <= REFINING.get(name, STITCHING), names
        (scores,) = host.score_maps_of([fake], [maps])
        assert len(scores.alarms) == 1, 'one flag per image'
        assert scores.labels(torch.uint8).device.type == 'cuda'
