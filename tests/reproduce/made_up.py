"""A made-up origin of results, for tests of what reads them."""

from __future__ import annotations

from tpa_mmseg.engine.provenance import Provenance

PROVENANCE = Provenance(
    commit='0123456789' * 4,
    dirty=False,
    packages={'python': '3.11.0', 'torch': '2.9.0'},
    device='Imaginary device',
    driver='1.2.3',
    precision={'host': 'float32'},
    weights={'host': 'ab' * 8},
    banks={'full': 'cd' * 8},
    data='ef' * 8,
    config='a = 1\n',
    seeds={'pool': 0},
    seconds=4.0,
    device_memory=1 << 30,
    host_memory=2 << 30,
)
