from __future__ import annotations

import sys

from tests.engine.noisy_run import NoisyTruth, run, write_images


def progress(**options) -> list[dict]:
    return [dict(type='ProgressHook', **options)]


def test_log_gets_one_line_at_the_end_of_a_short_run(tmp_path, capfd):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(), progress())
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith('Testing')]
    assert len(lines) == 1
    assert lines[0].startswith('Testing: 3 of 3 images, ')
    assert '\r' not in lines[0]


def test_log_gets_a_line_per_interval(tmp_path, capfd):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(), progress(interval=0.0, description='Scoring'))
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith('Scoring')]
    assert [line.split(',')[0] for line in lines] == ['Scoring: 2 of 3 images', 'Scoring: 3 of 3 images']


def test_terminal_gets_a_bar_that_is_closed_before_the_tables(tmp_path, capsys, monkeypatch):
    write_images(tmp_path)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True, raising=False)
    hooks = [*progress(), dict(type='ReportHook')]
    runner = run(tmp_path, NoisyTruth(), hooks)
    err = capsys.readouterr().err
    assert '100%' in err and '3/3' in err and ' images/s' in err
    assert err.endswith('\n\x1b[?25h')  # the last escape sequence shows the cursor again
    handlers = [type(handler).__name__ for handler in runner.logger.handlers]
    assert handlers == ['StreamHandler', 'FileHandler']
    assert runner.logger.handlers[0].stream is not sys.stderr or type(sys.stderr).__name__ != 'FileProxy'
