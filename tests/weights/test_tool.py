"""tools/weights.py: what configs need, where it goes, how it is downloaded and checked."""

from __future__ import annotations

import hashlib
import http.server
import io
import threading
import time
from dataclasses import replace

import huggingface_hub.constants
import open_clip
import pytest
import safetensors.torch
import timm
import torch
from mmengine.config import Config

from tests.helpers.world import ROOT, run_in_process
from tpa_mmseg import catalog
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.encoders.timm_models import build_network
from tpa_mmseg.errors import TPAError
from tpa_mmseg.sam.model import find_checkpoint
from tpa_mmseg.weights.needs import needs
from tpa_mmseg.weights.sources import Source, clip_source, own_file, sam_source, timm_source

TINY = 'vit_tiny_patch16_224.augreg_in21k'
SAM = b'the weights of SAM'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty weights folder, an empty cache, and no hub."""
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path / 'weights'))
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(tmp_path / 'cache'))
    use_hub(monkeypatch, 'http://127.0.0.1:9')
    return tmp_path / 'weights'


def use_hub(monkeypatch, address: str) -> None:
    for name in ('http_proxy', 'https_proxy', 'all_proxy'):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(huggingface_hub.constants, 'ENDPOINT', address)
    template = address + '/{repo_id}/resolve/{revision}/{filename}'
    monkeypatch.setattr(huggingface_hub.constants, 'HUGGINGFACE_CO_URL_TEMPLATE', template)


def use_sam_server(monkeypatch, port: int) -> None:
    known = catalog.sam_weights

    def moved(model: str) -> catalog.WeightsFile:
        address = f'http://127.0.0.1:{port}/{known(model).name}.pth'
        return replace(known(model), url=address, sha256=hashlib.sha256(SAM).hexdigest())

    monkeypatch.setattr(catalog, 'sam_weights', moved)


@pytest.fixture
def hub(monkeypatch):
    """A hub that has a few files: path of the address -> content."""
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self, body: bool = False) -> None:
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header('Content-Length', str(len(content or b'')))
            self.send_header('ETag', '"0123456789abcdef"')
            self.send_header('X-Repo-Commit', 'a' * 40)
            if content is None:
                self.send_header('X-Error-Code', 'EntryNotFound')
            self.end_headers()
            if body and content:
                self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_HEAD(body=True)

        def log_message(self, *args) -> None:
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    use_hub(monkeypatch, f'http://127.0.0.1:{server.server_port}')
    use_sam_server(monkeypatch, server.server_port)
    yield files
    server.shutdown()
    server.server_close()


def tiny_state() -> dict[str, torch.Tensor]:
    return timm.create_model(TINY.partition('.')[0], num_classes=0).state_dict()


def torch_file(state: dict) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def write_config(path, **model):
    path.write_text(f'model = {model!r}\n', encoding='utf-8')
    return path


def wanted(path: str) -> dict[str, str]:
    model = Config.fromfile(ROOT / 'configs' / path).model
    return {need.place.removeprefix('model.'): need.source.names[0] for need in needs(model)}


def exit_code(*args) -> int:
    with pytest.raises(SystemExit) as stop:
        run_in_process('weights', *args)
    return stop.value.code


@pytest.mark.parametrize(
    ('config', 'expected'),
    [
        ('sclip/sclip_vit-b16_voc21.py', {'host.clip': 'ViT-B-16.openai'}),
        ('naclip/naclip_vit-l14_ade20k.py', {'host.clip': 'ViT-L-14.openai'}),
        (
            'proxyclip/proxyclip-mae_vit-h14_voc20.py',
            {'host.clip': 'ViT-H-14.laion2b_s32b_b79k', 'host.proxy': 'vit_base_patch16_224.mae'},
        ),
        (
            'trident/trident_vit-b16_cityscapes.py',
            {
                'host.clip': 'ViT-B-16.openai',
                'host.proxy': 'vit_base_patch16_224.dino',
                'host.sam': 'sam_vit_b_01ec64',
            },
        ),
    ],
)
def test_the_needs_of_a_config_are_read_off_its_model(config, expected):
    assert wanted(config) == {**expected, 'encoder': 'vit_base_patch14_dinov2.lvd142m'}


def test_what_a_config_leaves_to_its_classes_is_needed_as_well():
    clip = {'model': 'ViT-B/16', 'pretrained': 'openai'}
    model = {'type': 'TPASegmentor', 'host': {'type': 'Trident', 'clip': clip}, 'encoder': {'type': 'TimmEncoder'}}
    assert {need.source.title for need in needs(model)} == {
        'CLIP ViT-B-16 (openai)',
        'vit_base_patch16_224.dino',
        'SAM vit_b',
        'vit_base_patch14_dinov2.lvd142m',
    }


def test_random_weights_are_not_needed_and_own_files_are_needed_by_their_path(tmp_path):
    own = str(tmp_path / 'own.pth')
    model = {
        'host': {'type': 'SCLIP', 'clip': {'model': 'ViT-B-16', 'pretrained': None}},
        'encoder': {'type': 'TimmEncoder', 'model': {'type': 'VisionTransformer'}, 'pretrained': False},
        'proxies': [{'type': 'TimmEncoder', 'model': TINY, 'pretrained': own}],
        'sam': {'model': 'vit_b', 'checkpoint': own},
    }
    assert [(need.place, need.source.target) for need in needs(model)] == [
        ('model.proxies.0', tmp_path / 'own.pth'),
        ('model.sam', tmp_path / 'own.pth'),
    ]


def test_another_tag_of_an_encoder_is_another_file():
    encoder = {'type': 'TimmEncoder', 'model': 'vit_tiny_patch16_224', 'pretrained': 'augreg_in21k'}
    (need,) = needs(encoder)
    assert need.source.names[0] == TINY and need.part is encoder
    with pytest.raises(TPAError, match="no weights for 'vit_huge'"):
        list(needs({'type': 'TimmEncoder', 'model': 'vit_huge'}))


@pytest.mark.parametrize('name', [name for name, file in catalog.shipped().weights.items() if not file.sam])
def test_known_sizes_are_those_of_the_models(name):
    architecture, _, tag = name.partition('.')
    with torch.device('meta'):
        if architecture.startswith('ViT'):
            model = open_clip.CLIP(**open_clip.get_model_config(architecture))
        else:
            model = timm.create_model(name, num_classes=0)
            assert timm.models.get_pretrained_cfg(name).license == catalog.weights(name).license.lower()
    megabytes = sum(each.numel() for each in model.parameters()) * 4e-6
    assert megabytes == pytest.approx(catalog.weights(name).megabytes, rel=0.005)


def test_what_nobody_knows_is_unknown():
    source = own_file('a.pth', 'CLIP')
    assert (source.megabytes, source.license) == (None, 'unknown')
    assert timm_source(TINY).megabytes is None and timm_source(TINY).license == 'apache-2.0'


def test_configs_find_the_files_where_the_tool_puts_them(folder):
    folder.mkdir(exist_ok=True)
    clip, sam, encoder = clip_source('ViT-B-16-quickgelu', 'openai'), sam_source('vit_b'), timm_source(TINY)
    for source in (clip, sam, encoder):
        assert source.locate() is None
        safetensors.torch.save_file(tiny_state(), source.target)
        assert source.locate() == source.download() == source.target
    assert CLIPSpec('ViT-B-16-quickgelu', 'openai').path == clip.target
    assert CLIPSpec('ViT-B-16', 'openai').path == clip.target
    assert find_checkpoint('vit_b', None) == sam.target
    build_network(TINY, pretrained=True)


def test_list_shows_size_license_and_what_to_download(folder, capfd):
    assert exit_code('list', ROOT / 'configs/trident/trident_vit-b16_voc21.py') == 0
    said = capfd.readouterr().out
    assert '| CLIP ViT-B-16-quickgelu (openai) | clip ' in said and '| 599 MB | MIT ' in said
    assert '| https://dl.fbaipublicfiles.com/segment_anything/sam_vit_b_01ec64.pth ' in said
    assert str(folder / 'ViT-B-16.openai.safetensors') in said


def test_download_without_a_connection_ends_in_one_message_per_model_within_seconds(folder, capfd, monkeypatch):
    use_sam_server(monkeypatch, 9)
    start = time.perf_counter()
    assert exit_code('download', ROOT / 'configs/trident/trident_vit-b16_voc21.py') == 1
    assert time.perf_counter() - start < 15  # four models, and reading the config
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(said) == 4
    assert all(line.startswith('error: Cannot download the weights of ') and str(folder) in line for line in said)
    assert any(
        'Download open_clip_model.safetensors of the hub repository timm/vit_base_patch16_clip_224.openai' in line
        for line in said
    )
    assert not list(folder.iterdir())


def test_the_offline_mode_of_the_hub_is_respected(hub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    hub[f'/timm/{TINY}/resolve/main/model.safetensors'] = safetensors.torch.save(tiny_state())
    with pytest.raises(TPAError, match='offline mode is enabled.* Download model.safetensors of .* save it as'):
        timm_source(TINY).download()


def test_download_takes_from_the_hub_what_is_missing_and_check_builds_the_models(tmp_path, folder, hub, capfd):
    hub[f'/timm/{TINY}/resolve/main/model.safetensors'] = safetensors.torch.save(tiny_state())
    config = write_config(tmp_path / 'config.py', type='TimmEncoder', model=TINY)
    assert exit_code('check', config) == 1
    assert exit_code('download', config) == 0
    assert [file.name for file in folder.iterdir()] == [f'{TINY}.safetensors']
    assert exit_code('check', config) == 0
    assert exit_code('download', config) == 0
    said = capfd.readouterr().out.splitlines()
    assert 'missing. Download model.safetensors of the hub repository' in said[0]
    assert [line.partition(': ')[2].partition(' (')[0] for line in said[1:]] == [
        'downloaded',
        'complete',
        'already downloaded',
    ]


def test_a_clip_model_and_sam_are_downloaded_to_the_weights_folder(folder, hub):
    hub['/timm/vit_base_patch16_clip_224.openai/resolve/main/open_clip_model.safetensors'] = b'clip'
    hub['/sam_vit_b_01ec64.pth'] = SAM
    clip, sam = clip_source('ViT-B-16-quickgelu', 'openai'), sam_source('vit_b')
    assert clip.download(keep=True).read_bytes() == b'clip' and sam.download().read_bytes() == SAM
    assert clip.locate() == clip.target and sam.locate() == sam.target
    assert sorted(file.name for file in folder.iterdir()) == [clip.target.name, sam.target.name]


def test_a_model_downloads_its_weights_into_the_cache_of_the_hub_and_finds_them_there(tmp_path, folder, hub):
    hub[f'/timm/{TINY}/resolve/main/pytorch_model.bin'] = torch_file(tiny_state())  # no safetensors on this hub
    build_network(TINY, pretrained=True)
    hub.clear()
    path = timm_source(TINY).locate()
    assert path.name == 'pytorch_model.bin' and path.is_relative_to(tmp_path / 'cache')
    build_network(TINY, pretrained=True)
    assert not folder.exists() or not any(folder.iterdir())


def test_what_the_cache_of_the_hub_has_is_not_downloaded_again(tmp_path, hub):
    hub[f'/timm/{TINY}/resolve/main/model.safetensors'] = safetensors.torch.save(tiny_state())
    path = huggingface_hub.hf_hub_download(f'timm/{TINY}', 'model.safetensors')
    hub.clear()
    assert str(timm_source(TINY).download(keep=True)) == path and path.startswith(str(tmp_path / 'cache'))
    build_network(TINY, pretrained=True)


def test_what_the_hub_does_not_have_is_said(tmp_path, hub, capfd):
    config = write_config(tmp_path / 'config.py', type='TimmEncoder', model=TINY)
    assert exit_code('download', config) == 1
    assert capfd.readouterr().err.count('error: ') == 1


def test_check_names_a_file_that_is_cut_short_and_one_of_another_model(tmp_path, folder, capfd):
    folder.mkdir(exist_ok=True)
    encoder = timm_source(TINY)
    safetensors.torch.save_file(tiny_state(), encoder.target)
    encoder.target.write_bytes(encoder.target.read_bytes()[:-100])
    safetensors.torch.save_file(tiny_state(), clip_source('ViT-B-16', 'openai').target)
    clip = {'model': 'ViT-B-16', 'pretrained': 'openai'}
    config = write_config(tmp_path / 'config.py', host={'clip': clip}, encoder={'type': 'TimmEncoder', 'model': TINY})
    assert exit_code('check', config) == 1
    said = capfd.readouterr().out
    assert f'{TINY}: {encoder.target} cannot be read as weights' in said
    assert 'CLIP ViT-B-16 (openai): The weights' in said and 'do not fit' in said


def test_a_config_that_is_not_there_is_named(capfd):
    assert exit_code('list', 'nowhere.py') == 2
    assert capfd.readouterr().err == 'error: Config not found: nowhere.py. Check the path.\n'


def test_a_file_that_was_replaced_on_its_way_is_not_kept(folder, hub):
    hub['/sam_vit_b_01ec64.pth'] = b'a program'
    with pytest.raises(TPAError, match='Cannot download the weights of SAM vit_b .*hash'):
        sam_source('vit_b').download()
    assert not list(folder.iterdir())


def test_a_file_without_a_checksum_is_not_downloaded(folder):
    source = Source('someone else', ('theirs',), url='http://127.0.0.1:9/theirs.pth')
    with pytest.raises(TPAError, match='No checksum is known for http://127.0.0.1:9/theirs.pth'):
        source.download()


def test_checksums_are_known_and_safetensors_come_first():
    for name, file in catalog.load().weights.items():
        if file.url:
            assert len(sam_source(file.sam).checksum) == 64, name
    for source in (clip_source('ViT-B-16-quickgelu', 'openai'), timm_source(TINY)):
        assert source.files[0].endswith('.safetensors')
    digits = 'a' * 64
    assert Source('', url=f'https://a.b/{digits}/ViT.pt').checksum == digits
    assert Source('', url='https://a.b/model-0123abcd.pth').checksum == '0123abcd'
