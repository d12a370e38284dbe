"""Sphinx's settings. The source folder is the repository itself: links work on the site as they do in a checkout."""

from __future__ import annotations

import contextlib
import importlib
import io
import os

from sphinx.application import Sphinx
from tpa_tools.__main__ import COMMANDS

from tpa_mmseg.version import __version__

project = 'TPA for MMSegmentation'
author = copyright = 'The tpa_mmseg authors'
version = release = __version__

extensions = [
    'myst_nb',
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'sphinx_copybutton',
    'sphinx_design',
]
root_doc = 'docs/index'
include_patterns = ['docs/**', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'configs/README.md', 'data/README.md']
exclude_patterns = ['.*', 'build', 'work_dirs', 'tests', 'tools', 'tpa_mmseg', 'data/*/**', '**/.ipynb_checkpoints']
templates_path = ['_templates']

html_theme = 'furo'
html_title = f'tpa_mmseg {version}'
html_additional_pages = {'index': 'redirect.html'}
html_show_sourcelink = False

myst_enable_extensions = ['colon_fence', 'dollarmath']
myst_heading_anchors = 4
nb_execution_mode = 'off'  # tests/docs executes the notebooks

autodoc_member_order = 'bysource'
autodoc_typehints = 'none'  # the signature has them
autodoc_default_options = {'members': True}


def setup(app: Sphinx) -> None:
    app.connect('source-read', _add_help)
    app.connect('autodoc-process-docstring', _rejoin_first_line, priority=600)  # after napoleon


def _rejoin_first_line(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Undoes that napoleon takes what precedes a colon in the first line of a property for its type."""
    mark = ':type: '
    found = [line for line in lines if line.startswith(mark)] if what == 'property' else []
    if found:
        rest = [line for line in lines[1:] if line not in found]
        lines[:] = [f'{found[0].removeprefix(mark)}: {lines[0]}', *rest]


def _add_help(app: Sphinx, page: str, source: list[str]) -> None:
    """Appends the help of every command to the page of the command line."""
    if page == 'docs/api/cli':
        source[0] += ''.join(f'\n## tpa {name}\n\n```text\n{_help(name)}```\n' for name in COMMANDS)


def _help(command: str) -> str:
    os.environ['COLUMNS'] = '100'
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        importlib.import_module(f'tpa_tools.{command.replace("-", "_")}').main(['--help'], f'tpa {command}')
    return text.getvalue()
