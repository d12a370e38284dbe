from __future__ import annotations

import torch

from tests.evaluation.samples import sample
from tests.helpers.launches import fake_gpu, launches
from tpa_mmseg.core import Alarms
from tpa_mmseg.evaluation import HostTPAMetric

#: Operations per image of host and TPA together; two of them count what TPA changed.
LIMIT = 20


def test_scoring_an_image_takes_few_kernels_and_no_wait():
    metric = HostTPAMetric()
    metric.dataset_meta = {'classes': [str(number) for number in range(21)]}
    with fake_gpu():
        labels = [torch.empty(375, 500, dtype=torch.uint8, device='cuda') for _ in range(2)]
        truth = torch.empty(375, 500, dtype=torch.uint8, device='cuda')  # where a data preprocessor puts it
        image = sample(labels[0], truth, labels[1]).to_dict()

        def process() -> None:
            metric._alarms = Alarms()  # those of the image before are read in time, which no fake tensor can be
            metric.process({}, [image])

        names = launches(process)
        assert len(metric._alarms) == 1, 'one flag per image'
    assert names.total() <= LIMIT, names
    assert all(count.device.type == 'cuda' for count in metric.results[0]['prediction'])
