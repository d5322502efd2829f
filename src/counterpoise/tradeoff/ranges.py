"""Where a quantity can lie at all: beyond that, a requirement is met by everything or by nothing.

A radius is never negative, so everything meets `certified_radius >= -0.1`: such a number is a slip, and is refused
where it is stated. A limit at the end of the range is a number like any other. Quantities that are not listed have no
known range, and any number is taken.
"""

from __future__ import annotations

import math

from counterpoise._check import InputError
from counterpoise.tradeoff.requirements import Bound, Requirement

Range = tuple[float, float]

_AMOUNT: Range = (0, math.inf)
_SHARE: Range = (0, 1)
_PERCENT: Range = (0, 100)
_SIGNED: Range = (-1, 1)
"""Differences of two shares, and correlations."""

RANGES: dict[str, Range] = {
    name: limits
    for limits, names in (
        (
            _AMOUNT,
            "epsilon local_epsilon noise privacy privacy_gain explanation explainability_gain certified_radius"
            " infidelity sensitivity_max code_length principal_axes",
        ),
        (
            _SHARE,
            "explainability code_ratio accuracy worst_group_accuracy bounded_privacy advantage_bound membership_privacy"
            " demographic_parity_difference equalised_odds_difference leak_p_value cluster_match cluster_nmi"
            " alignment pooled_emd emd_per_image mse deletion insertion random_deletion random_insertion"
            " explanation_quality randomisation_check blank_maps top_k_overlap attacked_overlap pointing_accuracy"
            " sparsity secret_p_value secret_privacy secret_moved utility_moved",
        ),
        (_PERCENT, "average_drop confidence_increase masked_score whole_score"),
        (
            _SIGNED,
            "utility_loss task_loss raw_task_loss accuracy_loss worst_group_loss smallest_group_loss"
            " membership_advantage class_leak linear_leak knn_leak mlp_leak leak_after_leace agreement_gap faithfulness"
            " stability ssim map_cosine map_spearman map_ssim secret_advantage inversion_ssim",
        ),
        ((-2, 1), "faithfulness_margin"),
        ((-2, 2), "fixed_gap"),
        ((0, 100), "inversion_psnr"),
        ((-7, math.inf), "information_leak"),  # calibrated on 1000 images at most, nobody is surer than ln 1002 nats
    )
    for name in names.split()
}


def range_of(quantity: str) -> Range | None:
    """The least and the largest value; a floor's, as `deletion_of_edges`, are its measure's. None: not known."""
    return RANGES.get(quantity.partition("_of_")[0])


def check_reachable(requirement: Requirement) -> None:
    """Raise where the limit lies outside the range of its quantity."""
    found = range_of(requirement.quantity)
    if not isinstance(requirement, Bound) or found is None:
        return
    low, high = found
    if low <= requirement.value <= high:
        return
    below = requirement.value < low
    met = below == (requirement.relation in (">=", ">"))
    raise InputError(
        f"requirement '{requirement}' is met by {'everything' if met else 'nothing'}: {requirement.quantity} is never"
        f" {f'below {low:g}' if below else f'above {high:g}'}; give a number {_within(low, high)}."
    )


def _within(low: float, high: float) -> str:
    return f"that is not below {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
