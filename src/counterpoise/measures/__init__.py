"""Measures: one number each, with its interval, about a candidate compared with its non-private baseline."""

from counterpoise.interface import Measure
from counterpoise.measures.class_leakage import (
    AgreementGap,
    Alignment,
    ClassLeak,
    ClusterInformation,
    ClusterMatch,
    CodeLength,
    LeakAfterErasure,
    LeakChance,
    LinearLeak,
    NeighbourLeak,
    NetworkLeak,
)
from counterpoise.measures.explainability_gain import ExplainabilityGain
from counterpoise.measures.fairness import (
    DemographicParity,
    EqualisedOdds,
    SmallestGroupLoss,
    WorstGroupAccuracy,
    WorstGroupLoss,
)
from counterpoise.measures.faithfulness import (
    Deletion,
    ExplanationQuality,
    Faithfulness,
    Insertion,
    RandomDeletion,
    RandomInsertion,
)
from counterpoise.measures.image_distance import MSE, SSIM, EMDPerImage
from counterpoise.measures.leakage import AdvantageBound, BoundedPrivacy, MembershipAdvantage, MembershipPrivacy
from counterpoise.measures.privacy_gain import CodeShare, InverseEpsilon, NoGain
from counterpoise.measures.stability import Stability
from counterpoise.measures.utility_loss import Accuracy, AccuracyLoss, NoLoss, PooledEMD, TaskLoss

OF_HIDDEN: tuple[type[Measure], ...] = (
    ClassLeak,
    LinearLeak,
    NeighbourLeak,
    NetworkLeak,
    LeakAfterErasure,
    LeakChance,
    CodeLength,
    ClusterMatch,
    ClusterInformation,
    AgreementGap,
    Alignment,
    WorstGroupAccuracy,
    WorstGroupLoss,
    SmallestGroupLoss,
    DemographicParity,
    EqualisedOdds,
)
"""Taken on request: where a study lists one under measures, or a party requires one. All need a hidden label."""

_ALL: tuple[type[Measure], ...] = (
    InverseEpsilon,
    CodeShare,
    NoGain,
    AccuracyLoss,
    PooledEMD,
    NoLoss,
    Accuracy,
    TaskLoss,
    EMDPerImage,
    MSE,
    SSIM,
    MembershipAdvantage,
    MembershipPrivacy,
    AdvantageBound,
    BoundedPrivacy,
    ExplainabilityGain,
    Deletion,
    Insertion,
    RandomDeletion,
    RandomInsertion,
    Faithfulness,
    Stability,
    ExplanationQuality,
    *OF_HIDDEN,
)

BUILTIN = {measure.name: measure for measure in _ALL}
"""Name in a study -> class; every class is made without arguments."""

ON_REQUEST = tuple(measure.name for measure in OF_HIDDEN)
_OF_PAPERS = ("inverse_epsilon", "code_share", "no_gain", "no_loss")
EVERYWHERE = tuple(name for name in BUILTIN if name not in (*_OF_PAPERS, *ON_REQUEST))
"""Taken of every training; the others are what one mechanism's paper uses, or what a study asks for."""

__all__ = [
    "BUILTIN",
    "EVERYWHERE",
    "MSE",
    "OF_HIDDEN",
    "ON_REQUEST",
    "SSIM",
    "Accuracy",
    "AccuracyLoss",
    "AdvantageBound",
    "BoundedPrivacy",
    "CodeShare",
    "Deletion",
    "EMDPerImage",
    "ExplainabilityGain",
    "ExplanationQuality",
    "Faithfulness",
    "Insertion",
    "InverseEpsilon",
    "MembershipAdvantage",
    "MembershipPrivacy",
    "NoGain",
    "NoLoss",
    "PooledEMD",
    "RandomDeletion",
    "RandomInsertion",
    "Stability",
    "TaskLoss",
]
