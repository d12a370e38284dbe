"""TPASegmentor: host, encoder and bank together."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS

from tests.helpers.world import SIZE, make_world
from tpa_mmseg.core import AnchorRule, Fusion, Lookup, PrototypeBank
from tpa_mmseg.core.fusion import FusedScores
from tpa_mmseg.datasets import PoolOptions, build_pool
from tpa_mmseg.encoders import PixelNormalization
from tpa_mmseg.engine.bank_builder import build_bank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.evaluation import with_bank

init_default_scope('mmseg')


@pytest.fixture(scope='module')
def cfg(tmp_path_factory):
    return Config.fromfile(make_world(tmp_path_factory.mktemp('world')))


@pytest.fixture(scope='module')
def images(cfg):
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    return [dataset[i] for i in range(3)]


@pytest.fixture(scope='module')
def pool(cfg):
    return build_pool(cfg.test_dataloader.dataset, PoolOptions())


def model_of(cfg, **changes):
    torch.manual_seed(0)
    return MODELS.build({**copy.deepcopy(dict(cfg.model)), **changes})


def run(model, data):
    return model.test_step(pseudo_collate(copy.deepcopy(data)))


def test_without_a_bank_the_labels_are_the_hosts(cfg, images):
    model = model_of(cfg)
    host = [sample.pred_sem_seg.data for sample in run(model.host, images)]
    for sample, labels in zip(run(model, images), host, strict=True):
        assert torch.equal(sample.pred_sem_seg.data, labels)
        assert torch.equal(sample.host_sem_seg.data, labels)


def test_an_empty_bank_leaves_the_hosts_labels(cfg, images):
    model = model_of(cfg)
    model.set_bank(model.new_bank())
    for sample in run(model, images):
        assert torch.equal(sample.pred_sem_seg.data, sample.host_sem_seg.data)


def test_alpha_one_leaves_the_hosts_labels(cfg, images, pool):
    model = model_of(cfg, fusion=dict(alpha=1.0))
    model.set_bank(build_bank(model, pool))
    for sample in run(model, images):
        assert torch.equal(sample.pred_sem_seg.data, sample.host_sem_seg.data)


def test_a_bank_changes_labels_as_the_core_says(cfg, images, pool):
    model = model_of(cfg)
    model.set_bank(build_bank(model, pool))
    data = model.data_preprocessor(pseudo_collate(copy.deepcopy(images)))
    for image, scores, sample in zip(data['inputs'], model.host.score_maps(**data), run(model, images), strict=True):
        phi = model.encoder(image, PixelNormalization.of(model.data_preprocessor))
        fused = FusedScores(scores, Lookup(model.bank.prototypes(), phi, scores.size), Fusion())
        assert torch.equal(sample.pred_sem_seg.data[0], fused.labels())
        assert not torch.equal(sample.pred_sem_seg.data, sample.host_sem_seg.data)


def test_a_batch_gives_each_image_the_labels_it_gets_alone(cfg, images, pool):
    model = model_of(cfg)
    model.set_bank(build_bank(model, pool))
    together = run(model, images)
    for one, sample in zip(images, together, strict=True):
        assert torch.equal(run(model, [one])[0].pred_sem_seg.data, sample.pred_sem_seg.data)


def test_images_of_different_sizes_in_one_batch(cfg, images, pool):
    preprocessor = dict(cfg.model.host.segmentor.data_preprocessor, type='TPADataPreProcessor')
    model = model_of(cfg, data_preprocessor=preprocessor)
    model.set_bank(build_bank(model, pool))
    cropped = copy.deepcopy(images[1])
    cropped['inputs'] = cropped['inputs'][:, :24, :]
    cropped['data_samples'].set_metainfo({'ori_shape': (24, SIZE[1]), 'img_shape': (24, SIZE[1])})
    together = run(model, [images[0], cropped])
    assert together[1].pred_sem_seg.data.shape == (1, 24, SIZE[1])
    assert torch.equal(run(model, [cropped])[0].pred_sem_seg.data, together[1].pred_sem_seg.data)


def test_consistent_tpa_is_refused_where_an_image_is_its_own_pool(cfg):
    with pytest.raises(TPAError, match='model.fusion.consistent needs a pool'):
        model_of(cfg, bank_scope='image', fusion=dict(consistent=True))


def test_per_image_prototypes_need_no_pool(cfg, images):
    model = model_of(cfg, bank_scope='image')
    data = model.data_preprocessor(pseudo_collate(copy.deepcopy(images[:1])))
    scores, phi = model.host.score_maps(**data)[0], model.extract_feat(data['inputs'])[0]
    bank = PrototypeBank(model.num_classes, model.encoder.dim)
    bank.update(scores, phi)
    expected = FusedScores(scores, Lookup(bank.prototypes(), phi, scores.size), Fusion()).labels()
    assert torch.equal(run(model, images[:1])[0].pred_sem_seg.data[0], expected)


def test_scores_are_returned_only_on_request(cfg, images, pool):
    model = model_of(cfg, return_scores=True)
    model.set_bank(build_bank(model, pool))
    sample = run(model, images[:1])[0]
    assert torch.equal(sample.seg_logits.data.argmax(0), sample.pred_sem_seg.data[0])
    assert 'seg_logits' not in run(model_of(cfg), images[:1])[0]


def test_any_registered_segmentor_is_wrapped_by_naming_it(cfg, images):
    model = model_of(cfg, host=cfg.model.host.segmentor)
    assert type(model.host).__name__ == 'SegmentorHost'
    assert run(model, images[:1])[0].pred_sem_seg.data.shape == (1, *SIZE)


def test_the_evidence_cache_does_not_change_numbers(cfg, images, pool):
    banks, labels = [], []
    for limit in (1, 10**9):
        model = model_of(cfg, evidence_cache=limit)
        banks.append(build_bank(model, pool))
        model.set_bank(banks[-1])
        labels.append([sample.pred_sem_seg.data for sample in run(model, images)])
    assert len(model._cache) == len(pool)
    assert torch.equal(banks[0].sums, banks[1].sums)
    assert all(torch.equal(a, b) for a, b in zip(*labels, strict=True))


def test_a_pool_in_batches_gives_the_same_bank(cfg, pool):
    one_by_one, in_batches = build_bank(model_of(cfg), pool), build_bank(model_of(cfg), pool, batch_size=3)
    assert len(pool) % 3 and one_by_one.images == in_batches.images == len(pool)
    assert torch.equal(one_by_one.counts, in_batches.counts) and torch.equal(one_by_one.sums, in_batches.sums)


def test_a_cached_image_goes_through_the_networks_once(cfg, images, pool, monkeypatch):
    model = model_of(cfg, evidence_cache=10**9)
    calls = []
    for kind, method in ((type(model.encoder), 'dense'), (type(model.host), 'score_maps')):
        original = getattr(kind, method)
        monkeypatch.setattr(kind, method, lambda *args, _run=original: calls.append(1) or _run(*args))
    model.set_bank(build_bank(model, pool))
    assert len(calls) == 2 * len(pool)
    run(model, images)
    assert len(calls) == 2 * len(pool)


def test_the_ablations_change_the_bank(cfg, pool):
    full = build_bank(model_of(cfg), pool)
    for anchors in ({'k': 6.0}, {'k_min': 400}, {'per': 'patch'}, {'random': True}):
        bank = build_bank(model_of(cfg, anchors=anchors), pool)
        assert not torch.equal(bank.sums, full.sums), anchors
    random = build_bank(model_of(cfg, anchors={'random': True}), pool)
    assert torch.equal(random.counts, full.counts)


def test_a_saved_bank_is_loaded_by_the_config(cfg, images, pool, tmp_path):
    model = model_of(cfg)
    bank = build_bank(model, pool)
    model.set_bank(bank)
    bank.save(tmp_path / 'bank.safetensors')
    loaded = model_of(cfg, bank=str(tmp_path / 'bank.safetensors'))
    for a, b in zip(run(model, images), run(loaded, images), strict=True):
        assert torch.equal(a.pred_sem_seg.data, b.pred_sem_seg.data)
    assert json.dumps(with_bank({'per_class': [{}] * 14}, loaded.bank, loaded.bank_file))


@pytest.mark.parametrize('other', ['host', 'encoder', 'classes'])
def test_a_bank_of_another_host_encoder_or_class_list_is_refused(cfg, pool, tmp_path, other):
    model = model_of(cfg)
    model.set_classes(pool.dataset.metainfo)
    path = tmp_path / 'bank.safetensors'
    build_bank(model, pool).save(path)
    changed = model_of(cfg, bank=str(path))
    changed.set_classes(pool.dataset.metainfo)
    if other == 'host':
        changed.host.segmentor.decode_head.conv_seg.bias.add_(1)
    elif other == 'encoder':
        changed.encoder.network.norm.weight.add_(1)
    else:
        changed.dataset_meta['classes'] = ('air', *changed.dataset_meta['classes'][1:])
    message = {'host': 'another host', 'encoder': 'another encoder', 'classes': "class 0 is 'grass' there, 'air' here"}
    with pytest.raises(TPAError, match=message[other]):
        changed.load_bank()


@pytest.mark.parametrize('part', ['host', 'encoder'])
def test_an_unknown_host_or_encoder_is_answered_with_the_known_ones(cfg, part):
    with pytest.raises(
        TPAError, match=f"Unknown {part} 'Nobody'.*({'SegmentorHost' if part == 'host' else 'TimmEncoder'})"
    ):
        model_of(cfg, **{part: dict(type='Nobody')})


def test_wrong_options_are_named(cfg):
    with pytest.raises(TPAError, match='model.anchors.kk is not an option of AnchorRule'):
        model_of(cfg, anchors=dict(kk=2))
    with pytest.raises(TPAError, match='alpha must be a number between 0 and 1'):
        model_of(cfg, fusion=dict(alpha=2))


def test_a_class_list_that_does_not_fit_is_refused(cfg):
    with pytest.raises(TPAError, match='has 14 classes, but the dataset has 2'):
        model_of(cfg).set_classes({'classes': ('a', 'b')})


def test_nothing_is_trainable_and_nothing_changes(cfg, images, pool):
    model = model_of(cfg)
    before = copy.deepcopy(model.state_dict())
    model.train()
    model.set_bank(build_bank(model, pool))
    run(model, images)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not any(module.training for module in model.modules())
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert model.anchor_rule == AnchorRule()


def test_mmsegs_init_model_accepts_the_config(cfg, images):
    from mmseg.apis import inference_model, init_model

    model = init_model(copy.deepcopy(cfg), device='cpu')
    result = inference_model(model, images[0]['data_samples'].img_path)
    assert result.pred_sem_seg.data.shape == (1, *SIZE)
