"""The catalog: its entries fit each other and the files around them, and mistakes in it are one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from mmengine.config import Config
from mmseg.registry import MODELS

from tpa_mmseg import catalog
from tpa_mmseg.catalog import CONFIGS, Row, paper
from tpa_mmseg.catalog.loading import read
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import Host
from tpa_mmseg.prepare import LAYOUTS
from tpa_mmseg.sam.model import PUBLISHED

CATALOG = catalog.shipped()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding='utf-8')
    return path


def test_catalog_has_every_config_that_there_is() -> None:
    combinations = list(CATALOG.combinations())
    files = {one.file for one in combinations}
    assert len(files) == len(combinations) == 407
    assert len(list(CATALOG.combinations('paper'))) == 365
    assert all((CONFIGS / file).is_file() for file in files)


def test_names_of_entries_are_those_of_other_entries() -> None:
    suites = set(CATALOG.suites)
    assert {entry.suite for entry in (*CATALOG.backbones.values(), *CATALOG.benchmarks.values())} == suites
    assert {entry.dataset for entry in CATALOG.benchmarks.values()} == set(CATALOG.datasets)
    for host in CATALOG.hosts.values():
        assert set(host.backbones) <= set(CATALOG.backbones) and set(host.rows) <= set(CATALOG.benchmarks)
        assert host.like is None or host.like in CATALOG.hosts
        assert issubclass(MODELS.get(host.type), Host)
        for variant in (one for special in host.variants.values() for one in special.values()):
            assert variant.proxy is None or variant.proxy in CATALOG.encoders
    for plan in CATALOG.suites.values():
        assert set(plan.extractors.values()) <= set(CATALOG.encoders)
        for row in (plan.ablation, plan.growth, *plan.vfm, *plan.composition, *plan.cost):
            assert any(CATALOG.find(row, name) for name in CATALOG.benchmarks), row


def test_base_configs_name_the_models_of_the_catalog() -> None:
    (named,) = (backbone for backbone in CATALOG.backbones.values() if backbone.in_base)
    known = [entry.encoder for entry in CATALOG.encoders.values()]
    for path in (CONFIGS / '_base_' / 'hosts').glob('*.py'):
        model = Config.fromfile(path).model
        assert model.host.clip == named.clip
        assert model.encoder in known and model.host.get('proxy', known[0]) in known


def test_weights_of_all_models_are_known() -> None:
    encoders = [entry.encoder['model'] for entry in CATALOG.encoders.values() if isinstance(entry.encoder, dict)]
    clips = [entry.clip for entry in CATALOG.backbones.values() if isinstance(entry.clip, dict)]
    names = {*encoders, *(f'{clip["model"].removesuffix("-quickgelu")}.{clip["pretrained"]}' for clip in clips)}
    assert names | {catalog.sam_weights(model).name for model in PUBLISHED} == set(CATALOG.weights)
    assert all(file.title and file.megabytes and file.license for file in CATALOG.weights.values())
    assert catalog.weights('nobody.knows') == catalog.WeightsFile('nobody.knows')


def test_prepared_datasets_are_those_of_the_catalog() -> None:
    used = {entry.dataset for entry in CATALOG.benchmarks.values() if entry.suite == 'paper'}
    assert set(LAYOUTS) == used


def test_rows_are_read_from_names() -> None:
    row = Row.of('naclip-224-mlmp_vit-l14')
    assert row == Row('naclip', '224-mlmp', 'vit-l14') and str(row) == 'naclip-224-mlmp_vit-l14'
    assert CATALOG.find(row, 'ade20k') is None
    assert CATALOG.config(row, 'voc21') == CONFIGS / 'naclip/naclip-224-mlmp_vit-l14_voc21.py'
    with pytest.raises(TPAError, match='No config for naclip-224-mlmp_vit-l14 on ade20k'):
        CATALOG.config(row, 'ade20k')


@pytest.mark.parametrize(
    'text, said',
    [
        ('hots: {}', "Unknown section 'hots' in "),
        ('backbones: {x: {tite: X}}', r"Unknown key 'tite' in backbones\.x of the catalog\. Keys: title, suite, "),
        ('backbones: {x: {}}', r'Incomplete entry backbones\.x of the catalog .*title'),
        ('hosts: {sclip: {variants: {nobody: [vit-b16]}}}', r"Unknown variant 'nobody' in hosts\.sclip"),
        ('hosts: {', 'Cannot read the catalog file '),
    ],
)
def test_mistake_in_a_file_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TPAError, match=said):
        catalog.load(write(tmp_path / 'mine.yaml', text))


def test_file_changes_entries_key_by_key(tmp_path: Path) -> None:
    first = write(tmp_path / 'a.yaml', 'backbones: {x: {title: X, settings: {a: 1, b: 2}}}')
    second = write(tmp_path / 'b.yaml', 'backbones: {x: {settings: {b: 3}}}')
    assert read(first, second).backbones['x'] == catalog.Backbone('x', 'X', settings={'a': 1, 'b': 3})


def test_added_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('tpa_mmseg.catalog.loading._added', [])
    try:
        catalog.add(write(tmp_path / 'mine.yaml', 'weights: {mine: {megabytes: 7, license: MIT}}'))
        assert catalog.weights('mine').megabytes == 7
        assert 'mine' not in catalog.shipped().weights
    finally:
        monkeypatch.undo()
        catalog.load.cache_clear()
    assert catalog.weights('mine').megabytes is None


def test_row_of_the_paper_has_one_set_of_numbers() -> None:
    printed: dict[str, dict] = {}
    for row in (row for table in paper.tables()['tables'].values() for row in table):
        assert printed.setdefault(row['key'], row['scores']) == row['scores']
    benchmarks = {name for name, entry in CATALOG.benchmarks.items() if entry.suite == 'paper'}
    assert all(set(scores) == benchmarks for scores in printed.values())


def test_averages_of_the_paper_are_the_means_of_their_rows_but_for_those_that_are_named() -> None:
    tables, ablations = paper.tables()['tables'], paper.tables()['ablations']
    rows = {(name, row['key']): row for name, table in tables.items() for row in table}
    rows |= {(name, row['key']): row for name, table in ablations.items() for row in table['rows']}
    named = {(entry['table'], entry['key']) for entry in paper.tables()['averages_that_differ_from_the_mean']}
    for place, row in rows.items():
        values = [value for value in (row.get('scores') or row['gains']).values() if value is not None]
        near = row['average'] is None or abs(sum(values) / len(values) - row['average']) < 0.0501
        assert near == (place not in named), place


def test_what_the_paper_does_not_print_is_none() -> None:
    assert paper.score('naclip-mlmp_vit-l14', 'ade20k') is None
    assert paper.score('proxyclip-mae_vit-b16', 'voc21', tpa=True) == 56.9
    assert paper.score('trident_vit-l14', 'voc21', tpa=True) is None
    assert paper.gain('k', 'naclip_vit-b16', 'k-1.5', 'voc21') == 2.38
    assert paper.gain('k', 'sclip_vit-b16', 'k-1.5', 'voc21') is None
    assert paper.gain('main', 'naclip_vit-b16', 'full', 'voc21') is None
    assert paper.costs('vit-l14')['clip'] == 13.0 and paper.costs('mini-b8') == {}
