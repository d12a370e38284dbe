"""Banks that share images are sums of parts that do not."""

from __future__ import annotations

from tpa_mmseg.core import AnchorRule
from tpa_mmseg.engine.bank_builder import BankSpec, _parts

NAMES = [f'{number}.png' for number in range(10)]


def test_every_image_is_added_once_however_many_banks_have_it() -> None:
    rule = AnchorRule()
    specs = [BankSpec(rule, members=frozenset(NAMES[:size])) for size in (2, 5, 10)]
    specs += [BankSpec(rule), BankSpec(rule, members=frozenset(NAMES[4:6]))]
    parts = _parts(NAMES, specs)
    assert sorted(name for part in parts for name in part.members) == sorted(NAMES)
    for spec in specs:
        found = set().union(*(part.members for part, holders in parts.items() if spec in holders))
        assert found == set(NAMES if spec.members is None else spec.members)


def test_banks_of_other_anchors_or_features_share_nothing() -> None:
    specs = [BankSpec(AnchorRule(k=k), encoder) for k in (1.0, 2.0) for encoder in ('encoder', 'clip')]
    parts = _parts(NAMES, specs)
    assert len(parts) == 4 and all(len(holders) == 1 for holders in parts.values())


def test_image_that_no_bank_wants_is_in_no_part() -> None:
    (part,) = _parts(NAMES, [BankSpec(AnchorRule(), members=frozenset(NAMES[:3]))])
    assert part.members == frozenset(NAMES[:3])
