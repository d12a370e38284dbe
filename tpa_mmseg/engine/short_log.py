"""A Runner whose log file has everything, and whose console has what a user reads."""

from __future__ import annotations

import logging

from mmengine.logging import MMLogger
from mmengine.runner import Runner

# How the long messages of MMEngine's Runner begin: environment, config, hooks; and the scores, which the table has.
_LONG = ('\n------', 'Config:\n', 'Hooks will be executed', 'Epoch(test)')


class ShortLogRunner(Runner):
    """MMEngine's Runner. Environment, config and order of hooks go to the log file only."""

    def build_logger(self, *args, **kwargs) -> MMLogger:
        logger = super().build_logger(*args, **kwargs)
        for handler in logger.handlers:
            if not isinstance(handler, logging.FileHandler):
                handler.addFilter(_is_short)
        return logger


def _is_short(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_LONG)
