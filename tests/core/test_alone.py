"""The method needs PyTorch alone: it works in a process in which nothing else of the stack can be imported."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.world import ROOT, environment

CODE = """
import sys, warnings

HIDDEN = ('mmengine', 'mmcv', 'mmseg', 'open_clip', 'timm', 'cv2', 'PIL', 'huggingface_hub', 'torchvision')

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in HIDDEN:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

sys.meta_path.insert(0, Hide())
warnings.simplefilter('error')
import torch
import tpa_mmseg
from tpa_mmseg.core import ClassProbabilities, Fusion, FusedScores, Lookup, PrototypeBank
import tpa_mmseg.catalog, tpa_mmseg.layers

torch.manual_seed(0)
scores = ClassProbabilities(torch.rand(3, 8, 8).softmax(0), (8, 8))
phi = torch.randn(4, 2, 2)
bank = PrototypeBank(3, 4)
bank.update(scores, phi)
bank.save(sys.argv[1])
prototypes = PrototypeBank.load(sys.argv[1]).prototypes()
labels = FusedScores(scores, Lookup(prototypes, phi, (8, 8)), Fusion()).labels()
assert labels.shape == (8, 8)
assert tpa_mmseg.import_error.name in HIDDEN, tpa_mmseg.import_error
try:
    tpa_mmseg.segment
except ImportError as error:
    print(error)
"""


def test_core_works_where_nothing_but_pytorch_can_be_imported(tmp_path):
    command = [sys.executable, '-c', CODE, str(tmp_path / 'bank.safetensors')]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('tpa_mmseg.segment cannot be used here')
