"""Measures: one number each, with its interval, about a candidate compared with its non-private baseline."""

from counterpoise.interface import Measure
from counterpoise.measures.explainability_gain import ExplainabilityGain
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
from counterpoise.measures.robustness import AttackedOverlap, CertifiedRadius
from counterpoise.measures.stability import Stability
from counterpoise.measures.utility_loss import Accuracy, AccuracyLoss, NoLoss, PooledEMD, TaskLoss

BUILTIN: dict[str, type[Measure]] = {
    measure.name: measure
    for measure in (
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
        CertifiedRadius,
        AttackedOverlap,
    )
}
"""Name in a study -> class; every class is made without arguments."""

ON_REQUEST = (CertifiedRadius.name, AttackedOverlap.name)
"""Taken where a party requires them or the study lists them: they cost more than all others together."""

_ROLES = ("inverse_epsilon", "code_share", "no_gain", "no_loss")

EVERYWHERE = tuple(name for name in BUILTIN if name not in (*_ROLES, *ON_REQUEST))
"""Taken of every training; the others are what one mechanism's paper calls its privacy gain or utility loss."""

__all__ = [
    "BUILTIN",
    "EVERYWHERE",
    "MSE",
    "ON_REQUEST",
    "SSIM",
    "Accuracy",
    "AccuracyLoss",
    "AdvantageBound",
    "AttackedOverlap",
    "BoundedPrivacy",
    "CertifiedRadius",
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
