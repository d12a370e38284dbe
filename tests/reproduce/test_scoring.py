"""Variants scored in one host pass have the numbers they have when each is run alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from tests.helpers.world import results, run_in_process
from tests.reproduce.demo_suite import OTHER, ROW, demo_suite, use
from tpa_mmseg.catalog import Encoder
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.reproduce import plan, suite_of
from tpa_mmseg.reproduce.folders import RunFolder
from tpa_mmseg.reproduce.results import RunResult, Scores
from tpa_mmseg.reproduce.run import measure
from tpa_mmseg.reproduce.runs import FULL, Run, Setting

VARIANTS = {
    Setting('full', 'TPA'): [],
    Setting('k-5', 'k = 5', anchors={'k': 5.0}): ['model.anchors.k=5.0'],
    Setting('random', 'random', anchors={'random': True}): ['model.anchors.random=True'],
    Setting('image', 'image', bank_scope='image'): ['model.bank_scope=image'],
    Setting('few', 'few', fraction=0.3): ['custom_hooks.0.pool.size=2'],
    Setting('alpha', 'alpha', fusion={'alpha': 0.1}): ['model.fusion.alpha=0.1'],
    Setting('lambda', 'lambda', fusion={'lambda_': 20.0}): ['model.fusion.lambda_=20.0'],
    Setting('seed', 'seed', pool_seed=3): ['custom_hooks.0.pool.seed=3'],
    # Centering changes labels only where a class has no prototype, as with the smaller pool.
    Setting('raw', 'raw', fusion={'center': False}, fraction=0.3): [
        'custom_hooks.0.pool.size=2',
        'model.fusion.center=False',
    ],
}


@pytest.fixture(scope='module')
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    folder = tmp_path_factory.mktemp('world')
    with pytest.MonkeyPatch.context() as patch:
        use(demo_suite(folder), patch)
        run = Run('components', 'demo', ROW, 'dusk', settings=tuple(VARIANTS))
        return folder, measure(run, RunFolder(folder / 'run'))


@pytest.mark.parametrize('variant', VARIANTS, ids=lambda variant: variant.key)
def test_variant_has_the_numbers_of_a_run_of_its_own(together, tmp_path: Path, variant: Setting) -> None:
    folder, result = together
    torch.manual_seed(0)
    options = ['--cfg-options', *VARIANTS[variant]] if VARIANTS[variant] else []
    run_in_process('test', folder / 'config.py', '--work-dir', tmp_path, *options)
    alone, found = results(tmp_path), result.variant(variant.key)
    assert alone['host'] == vars(result.host)
    assert alone['tpa'] == vars(found.tpa)
    assert alone['gain'] == vars(found.gain)
    entries = [{'anchors': None, **entry} for entry in alone['per_class']]
    assert entries == [{key: value for key, value in vars(one).items() if key != 'images'} for one in found.per_class]
    if found.bank is not None:
        assert (found.bank.images, found.bank.anchors) == (alone['bank']['images'], alone['bank']['anchors'])


def test_variants_differ(together) -> None:
    scores = {variant.key: vars(variant.tpa) for variant in together[1].variants}
    assert len({tuple(score.values()) for score in scores.values()}) == len(scores), scores


def test_host_sees_every_image_once_however_many_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tpa_mmseg.hosts import SegmentorHost

    seen = []
    original = SegmentorHost.score_maps
    monkeypatch.setattr(SegmentorHost, 'score_maps', lambda *args: seen.append(1) or original(*args))
    use(demo_suite(tmp_path, count=5, pool=2), monkeypatch)
    run = Run('k', 'demo', ROW, 'dusk', settings=tuple(VARIANTS))
    measure(run, RunFolder(tmp_path / 'run'))
    # Images of the pool are test images, too, and their evidence is kept.
    assert len(seen) == 5


def test_another_encoder_makes_another_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(demo_suite(tmp_path, count=3, pool=2), monkeypatch)
    variants = (Setting('full', 'TPA'), Setting('other', 'other', encoder='other'))
    result = measure(Run('extractor', 'demo', ROW, 'dusk', settings=variants), RunFolder(tmp_path / 'run'))
    widths = [variant.bank.bytes for variant in result.variants]
    assert widths == [8 * len(CLASSES) * (96 + 1), 8 * len(CLASSES) * (OTHER['model']['embed_dim'] + 1)]


def test_untrained_encoder_is_the_same_whatever_is_built_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = demo_suite(tmp_path, count=3, pool=2)
    second = {**OTHER, 'model': {**OTHER['model'], 'depth': 2}}
    extractors = {key: Encoder(key, key, config) for key, config in {'other': OTHER, 'second': second}.items()}
    use(replace(suite, extractors=extractors), monkeypatch)
    variants = tuple(Setting(key, key, encoder=key) for key in ('other', 'second'))

    def scores(*keys: str, **options) -> dict[str, Scores]:
        chosen = tuple(variant for key in keys for variant in variants if variant.key == key) or (FULL,)
        run = Run('extractor', 'demo', ROW, 'dusk', settings=chosen)
        return {one.key: one.tpa for one in measure(run, RunFolder(tmp_path / 'run'), **options).variants}

    together = scores('other', 'second')
    assert together['other'] != together['second']
    assert scores('second', 'other') == together
    assert scores('second') == {'second': together['second']}
    config = {'model.encoder': {'_delete_': True, **second}}
    assert scores(cfg_options=config) == {'full': together['second']}


def test_clip_features_have_the_numbers_of_a_run_of_their_own(tmp_path: Path) -> None:
    settings = {'test_dataloader.dataset.size': 3, 'custom_hooks.0.pool.size': 2}
    run = replace(plan('main', 'miniature', hosts=['clip'])[0], settings=plan('components')[0].settings[:2])
    result = measure(run, RunFolder(tmp_path / 'run'), cfg_options=settings)
    cfg = Config.fromfile(suite_of('miniature').config(run))
    cfg.merge_from_dict(settings)
    cfg.model.encoder = dict(type='CLIPEncoder', clip=cfg.model.host.clip)
    cfg.dump(tmp_path / 'alone.py')
    run_in_process('test', tmp_path / 'alone.py', '--work-dir', tmp_path / 'alone')
    alone = results(tmp_path / 'alone')
    assert alone['host'] == vars(result.host)
    assert alone['tpa'] == vars(result.variant('clip-features').tpa)
    assert alone['tpa'] != vars(result.variant('per-image').tpa)
