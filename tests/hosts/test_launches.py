"""From an image to its labels a host does not wait for a GPU, and stitching makes it do little."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from mmseg.structures import SegDataSample

from tests.helpers.launches import NoWaits, fake_gpu, launches
from tests.helpers.zoo import ZOO, images
from tpa_mmseg.hosts.clip_host import CLIPHost
from tpa_mmseg.hosts.trident import Trident, refinement
from tpa_mmseg.hosts.windows import Cut

#: Operations per image from the windows' maps to the ScoreMap, the check for NaN included.
STITCHING = 10
#: Of hosts that refine the maps of windows first.
REFINING = {'MaskCLIP with refinements': 24}
#: Those that run from the image on, the network included: one of every kind that looks at content, except for plug-ins
#: that learn by Adam, which ask once whether windows are finite.
WHOLE = (
    'SCLIP with area_thd',
    'NACLIP',
    'MaskCLIP with refinements',
    'ProxyCLIP with FSA',
    'CLIP with ResCLIP',
    'T3A around NACLIP',
    'LAME around NACLIP',
    'Trident, halves and PAMR',
    'Trident with refinement',
)


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


@pytest.mark.filterwarnings('ignore:CUDA is not available', 'ignore:Accessing the data pointer of FakeTensor')
@pytest.mark.parametrize('name', WHOLE)
def test_nothing_waits_from_an_image_to_its_labels(name, tmp_path, monkeypatch):
    host, size = ZOO[name](), (48, 64)
    # SAM reads the file. Its regions are the one thing that a GPU is asked for, and without content it has no answer.
    cv2.imwrite(str(tmp_path / 'image.png'), np.zeros((*size, 3), np.uint8))
    sample = SegDataSample(metainfo={'ori_shape': size, 'img_path': str(tmp_path / 'image.png')})
    regions = np.arange(24)[:, None] // 12 + np.zeros((24, 32), int), np.ones((24, 32), np.float32)
    monkeypatch.setattr(refinement, '_read', lambda scores, labels: regions)

    with fake_gpu(), torch.no_grad():
        host.to('cuda')
        with NoWaits():
            (scores,) = host.score_maps([torch.empty(3, *size, device='cuda')], [sample])
            assert scores.labels(torch.uint8).device.type == 'cuda'
