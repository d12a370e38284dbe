"""Why TPA could not help: sentences for results that would otherwise be a silent zero gain."""

from __future__ import annotations

from ..core import AnchorRule, Coverage, Fusion


def bank_caveats(coverage: Coverage, rule: AnchorRule) -> list[str]:
    """Returns what a user should know about a bank: that it is empty, or covers less than half of the classes.

    Args:
        coverage: Of the bank.
        rule: What its anchors are.
    """
    classes, covered = len(coverage.covered), sum(coverage.covered)
    if not coverage.images:
        return ['The bank is empty: it was built from no image, so TPA changes nothing. Give the pool some images.']
    if not covered:
        return [f'No class has anchors, so TPA changes nothing. {_remedy(rule, classes)}']
    if 2 * covered < classes:
        return [
            f'Only {covered} of {classes} classes have a prototype, so TPA cannot help the others. '
            f'Use a larger pool (now {coverage.images}). {_remedy(rule, classes)}'
        ]
    return []


def unchanged_caveat(fusion: Fusion, rule: AnchorRule, classes: int) -> str:
    """Returns the sentence for a test in which TPA changed no label.

    Args:
        fusion: The weights of TPA.
        rule: What its anchors are.
        classes: Number of classes.
    """
    if not fusion.beta:
        return (
            f'TPA changed no label: its weight (1 - alpha) * lambda is 0 (alpha = {fusion.alpha:g}, lambda = '
            f'{fusion.lambda_:g}). The defaults are 0.5 and 5.'
        )
    return f'TPA changed no label. Raise lambda (model.fusion.lambda), or use a larger pool. {_remedy(rule, classes)}'


def _remedy(rule: AnchorRule, classes: int) -> str:
    return (
        f'An anchor needs a probability above {rule.tau(classes):.2f} (k = {rule.k:g}, {classes} classes) and a class '
        f"{rule.k_min} of them: lower k (model.anchors.k), or raise the host's logit_scale."
    )
