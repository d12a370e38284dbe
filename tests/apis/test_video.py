"""Videos: what is read, what is written, and what is said without PyAV."""

from __future__ import annotations

import json
import sys
import weakref
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from tests.helpers.browser import browser, page  # noqa: F401
from tests.helpers.tiny_segmenter import painted, tiny_segmenter
from tests.helpers.world import run_in_process
from tpa_mmseg.apis.saving import OutputFolder
from tpa_mmseg.apis.video import Video, VideoWriter
from tpa_mmseg.errors import TPAError


def frames(count: int, size: tuple[int, int] = (48, 64)) -> list[Image.Image]:
    """Frames of one color each, the left half black."""
    made = []
    for number in range(count):
        pixels = np.full((*size, 3), 20 * number + 40, dtype=np.uint8)
        pixels[:, : size[1] // 2] = 0
        made.append(Image.fromarray(pixels))
    return made


def written(path: Path, count: int = 6, fps: float = 10, size: tuple[int, int] = (48, 64)) -> Path:
    with VideoWriter(path, fps) as writer:
        for frame in frames(count, size):
            writer.add(frame)
    return path


def pixels(frame) -> np.ndarray:
    """(H, W, 3) of a frame that was read."""
    return frame.load()['img'][..., ::-1]


def gray(frame) -> int:
    """Color of the right half."""
    return int(pixels(frame)[0, -3:].mean())


def test_video_is_h264_that_browsers_play(tmp_path):
    path = written(tmp_path / 'new' / 'clip.mp4')
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec.name, stream.pix_fmt) == ('h264', 'yuv420p')
        assert (stream.width, stream.height, stream.frames) == (64, 48, 6)
    content = path.read_bytes()
    assert content.index(b'moov') < content.index(b'mdat')  # the index comes first, so playing starts at once
    assert [file.name for file in path.parent.iterdir()] == ['clip.mp4']


def test_chromium_plays_a_video_to_its_end(tmp_path, page):  # noqa: F811
    written(tmp_path / 'clip.mp4')
    (tmp_path / 'page.html').write_text('<video src=clip.mp4 muted></video>', encoding='utf-8')
    page.goto((tmp_path / 'page.html').as_uri())
    ended = (
        'async film => { await film.play(); await new Promise(done => film.onended = done); return film.videoWidth }'
    )
    assert page.locator('video').evaluate(ended) == 64


@pytest.mark.parametrize('fps', [10, 24, Fraction(30000, 1001), Fraction(24000, 1001), 12.5])
def test_frame_rate_is_kept(tmp_path, fps):
    path = written(tmp_path / 'clip.mp4', fps=float(fps))
    with av.open(str(path)) as container:
        assert container.streams.video[0].average_rate == Fraction(fps)
    assert Video(path).fps == pytest.approx(float(fps))
    assert Video(path, frame_stride=2).fps == pytest.approx(float(fps) / 2)


@pytest.mark.parametrize('size', [(47, 63), (48, 63), (1, 1), (1, 64)])
def test_odd_sizes_are_padded(tmp_path, size):
    (first, *_) = Video(written(tmp_path / 'clip.mp4', size=size))
    assert pixels(first).shape == (size[0] + size[0] % 2, size[1] + size[1] % 2, 3)


@pytest.mark.parametrize(('stride', 'numbers'), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3]), (9, [0])])
def test_every_nth_frame_is_read(tmp_path, stride, numbers):
    video = Video(written(tmp_path / 'clip.mp4', count=5), stride)
    found = list(video)
    assert video.count == len(found) == len(numbers)
    assert [frame.name for frame in found] == [f'clip.mp4, frame {number}' for number in numbers]
    assert [gray(frame) for frame in found] == pytest.approx([20 * number + 40 for number in numbers], abs=3)
    assert [frame.name for frame in video] == [frame.name for frame in found]  # it can be read again


def test_frames_of_a_phone_are_upright(tmp_path):
    path = written(tmp_path / 'clip.mp4', count=1)
    # The matrix in the track header that says "turn by a quarter": (0, 1; -1, 0) in 16.16 fixed point.
    content = bytearray(path.read_bytes())
    upright = b''.join(value.to_bytes(4, 'big') for value in (0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000))
    turned = b''.join(value.to_bytes(4, 'big') for value in (0, 0x10000, 0, 0xFFFF0000, 0, 0, 0, 0, 0x40000000))
    place = content.index(upright, content.index(b'tkhd'))
    content[place : place + len(upright)] = turned
    path.write_bytes(content)
    (frame,) = Video(path)
    assert pixels(frame).shape == (64, 48, 3)
    # What was on the left, black, is on top after a quarter turn clockwise, as players show it.
    assert pixels(frame)[:20].max() < 20 < pixels(frame)[-20:].min()


@pytest.mark.parametrize(('count', 'numbers'), [(None, range(10)), (99, range(10)), (4, (0, 3, 6, 9)), (1, (0,))])
@pytest.mark.parametrize('suffix', ['mp4', 'mkv'])
def test_sample_is_spread_over_the_video(tmp_path, suffix, count, numbers):
    path = written(tmp_path / 'clip.mp4', count=10)
    if suffix == 'mkv':  # which does not contain the number of frames
        path = remuxed(path, tmp_path / 'clip.mkv')
        assert Video(path).count is None
    assert [frame.name for frame in Video(path).sample(count)] == [f'{path.name}, frame {number}' for number in numbers]


def remuxed(path: Path, target: Path) -> Path:
    with av.open(str(path)) as source, av.open(str(target), 'w') as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
    return target


def with_sound(path: Path, count: int) -> Path:
    """A video of a second or two with a tone."""
    with av.open(str(path), 'w') as out:
        film, sound = out.add_stream('libx264', 10), out.add_stream('aac', 8000, layout='mono')
        film.width, film.height, film.pix_fmt = 64, 48, 'yuv420p'
        for number in range(count):
            image = Image.fromarray(painted(number, (48, 64)))
            out.mux(film.encode(av.VideoFrame.from_image(image)))
        wave = np.sin(np.arange(8000) / 3).astype(np.float32)[None]
        tone = av.AudioFrame.from_ndarray(wave, format='fltp', layout='mono')
        tone.sample_rate = 8000
        out.mux([*sound.encode(tone), *sound.encode(None), *film.encode(None)])
    return path


def test_frames_are_written_as_they_come_none_is_held_and_sound_is_left_out(tmp_path):
    video = Video(with_sound(tmp_path / 'clip.mp4', 25))
    with av.open(str(video.path)) as container:
        assert len(container.streams.audio) == 1
    alive, most = weakref.WeakSet(), 0

    def watched(results):
        nonlocal most
        for result in results:
            alive.update((result, result.image))
            most = max(most, len(alive))
            yield result

    out = OutputFolder(tmp_path / 'out', [])
    out.add_video(video, watched(tiny_segmenter(k=1.1).stream(video, update_bank=True)))
    out.finish()
    assert most <= 4  # a frame and its labels, and those before them
    for kind in ('overlays', 'comparisons'):
        with av.open(str(tmp_path / 'out' / kind / 'clip.mp4')) as container:
            assert len(container.streams) == 1 and container.streams.video[0].frames == 25
    lines = (tmp_path / 'out/areas/clip.jsonl').read_text(encoding='utf-8').splitlines()
    assert [json.loads(line)['bank_images'] for line in lines] == list(range(1, 26))


def test_interrupted_video_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), VideoWriter(tmp_path / 'clip.mp4', 10) as writer:
        writer.add(frames(1)[0])
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_links_of_others_are_not_followed(tmp_path):
    """Where others can write too, they may lay links under the names that they expect."""
    mine = tmp_path / 'mine.txt'
    mine.write_text('precious', encoding='utf-8')
    folder = tmp_path / 'shared'
    folder.mkdir()
    for name in ('clip.mp4', '.clip.part.mp4', '.clip.mp4.tmp'):
        (folder / name).symlink_to(mine)
    path = written(folder / 'clip.mp4')
    assert mine.read_text(encoding='utf-8') == 'precious'
    assert not path.is_symlink() and len(list(Video(path))) > 0


def test_video_without_frames_is_no_file(tmp_path):
    with VideoWriter(tmp_path / 'clip.mp4', 10):
        pass
    assert list(tmp_path.iterdir()) == []


def test_without_libx264_there_is_a_warning_and_a_video(tmp_path, monkeypatch):
    monkeypatch.setattr(av, 'codecs_available', {'mpeg4'})
    with pytest.warns(UserWarning, match='without libx264'):
        path = written(tmp_path / 'clip.mp4')
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec.name == 'mpeg4'
    assert [gray(frame) for frame in Video(path)] == pytest.approx([40, 60, 80, 100, 120, 140], abs=8)


def test_truncated_video_gives_the_frames_that_it_has(tmp_path):
    path = tmp_path / 'clip.mp4'
    with VideoWriter(path, 10) as writer:
        for seed in range(60):
            noise = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)
            writer.add(Image.fromarray(noise))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert 10 < len(list(Video(path))) < 60


@pytest.mark.parametrize('content', [b'', b'not a video' * 100])
def test_file_that_is_not_a_video_is_one_sentence(tmp_path, content):
    (tmp_path / 'bad.mp4').write_bytes(content)
    with pytest.raises(TPAError, match=r'Cannot read the video .*bad\.mp4'):
        Video(tmp_path / 'bad.mp4')


def test_missing_video_and_wrong_stride_are_one_sentence(tmp_path):
    with pytest.raises(TPAError, match=r'Video not found: .*none\.mp4'):
        Video(tmp_path / 'none.mp4')
    with pytest.raises(TPAError, match='at least 1, got 0'):
        Video(written(tmp_path / 'clip.mp4'), 0)


def test_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / 'file').write_text('')
    with (
        pytest.raises(TPAError, match='Cannot write .*clip.mp4'),
        VideoWriter(tmp_path / 'file' / 'clip.mp4', 10) as out,
    ):
        out.add(frames(1)[0])


def test_without_pyav_the_extra_is_named(tmp_path, monkeypatch, capfd):
    path = written(tmp_path / 'clip.mp4')
    monkeypatch.setitem(sys.modules, 'av', None)
    with pytest.raises(SystemExit) as stop:
        run_in_process('segment', path, '--classes', 'cat; dog', '--out', tmp_path / 'out')
    assert stop.value.code == 2
    said = capfd.readouterr().err
    assert said == "error: Videos need PyAV. Install it with: pip install 'tpa_mmseg[video]'\n"
