"""What happens around a test: the bank, several ranks, the report."""

from .bank_hook import PrototypeBankHook
from .comparison_hook import ComparisonHook
from .distributed import TestOnlyWrapper, init_distributed
from .progress_hook import ProgressHook
from .report_hook import ReportHook
