"""``python -m tpa_mmseg.launch RANKS``: executes the pickled task on its standard input."""

import pickle
import sys

from .execute import execute

if __name__ == '__main__':
    execute(pickle.load(sys.stdin.buffer), int(sys.argv[1]))
