"""TPASegmentor: a host with Test-time Prototype Adaptation around it."""

from .data_preprocessor import TPADataPreProcessor
from .gather import gather_evidence
from .tpa_segmentor import TPASegmentor
