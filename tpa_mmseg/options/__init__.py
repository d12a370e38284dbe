"""Options that users write in configs and on command lines: what is allowed, and one sentence for what is not."""

from .checking import Kinds, options_of, problems
from .fields import check_fields
from .rules import AtLeastOne, Choice, NotNegative, Positive, Range, Share, one_of
from .signature import Options, options_of_class, unknown_option
