"""Measures: one number each, with its interval, about a candidate compared with its non-private baseline."""

from counterpoise.interface import Measure
from counterpoise.measures.agreement import MapCosine, MapSpearman, MapSSIM, TopKOverlap
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
    PrincipalAxes,
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
    FaithfulnessMargin,
    Insertion,
    RandomDeletion,
    RandomInsertion,
)
from counterpoise.measures.image_distance import MSE, SSIM, EMDPerImage
from counterpoise.measures.information import (
    FixedGap,
    InformationLeak,
    SecretAdvantage,
    SecretChance,
    SecretMoved,
    SecretPrivacy,
    UtilityMoved,
)
from counterpoise.measures.inversion import InversionPSNR, InversionSSIM
from counterpoise.measures.leakage import AdvantageBound, BoundedPrivacy, MembershipAdvantage, MembershipPrivacy
from counterpoise.measures.masked_input import AverageDrop, BlankMaps, ConfidenceIncrease, MaskedScore, WholeScore
from counterpoise.measures.perturbation import Infidelity, SensitivityMax
from counterpoise.measures.privacy_gain import CodeShare, InverseEpsilon, NoGain
from counterpoise.measures.robustness import AttackedOverlap, CertifiedRadius
from counterpoise.measures.sanity import PointingAccuracy, RandomisationCheck, Sparsity
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
    PrincipalAxes,
    AgreementGap,
    Alignment,
    WorstGroupAccuracy,
    WorstGroupLoss,
    SmallestGroupLoss,
    DemographicParity,
    EqualisedOdds,
    SecretAdvantage,
    SecretPrivacy,
    InformationLeak,
    SecretChance,
    FixedGap,
    SecretMoved,
)
"""Taken on request: where a study lists one under measures, or a party requires one. All need a hidden label."""

EVERY_TRAINING: tuple[type[Measure], ...] = (
    AccuracyLoss,
    PooledEMD,
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
)
OF_A_PAPER: tuple[type[Measure], ...] = (InverseEpsilon, CodeShare, NoGain, NoLoss)
"""What one mechanism's paper calls its privacy gain or utility loss: taken where that mechanism is."""

ON_REQUEST: tuple[type[Measure], ...] = (
    AverageDrop,
    ConfidenceIncrease,
    MaskedScore,
    WholeScore,
    BlankMaps,
    FaithfulnessMargin,
    Infidelity,
    SensitivityMax,
    TopKOverlap,
    MapCosine,
    MapSpearman,
    MapSSIM,
    RandomisationCheck,
    PointingAccuracy,
    Sparsity,
    CertifiedRadius,
    AttackedOverlap,
    UtilityMoved,
    InversionPSNR,
    InversionSSIM,
    *OF_HIDDEN,
)
"""Taken where a study's `measures` names them: they cost more, or answer a question that not everybody has."""

BUILTIN: dict[str, type[Measure]] = {measure.name: measure for measure in (*OF_A_PAPER, *EVERY_TRAINING, *ON_REQUEST)}
"""Name in a study -> class; every class can be made without arguments."""

EVERYWHERE = tuple(measure.name for measure in EVERY_TRAINING)
"""Taken of every training."""

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
    "AttackedOverlap",
    "AverageDrop",
    "BlankMaps",
    "BoundedPrivacy",
    "CertifiedRadius",
    "CodeShare",
    "ConfidenceIncrease",
    "Deletion",
    "EMDPerImage",
    "ExplainabilityGain",
    "ExplanationQuality",
    "Faithfulness",
    "FaithfulnessMargin",
    "FixedGap",
    "Infidelity",
    "InformationLeak",
    "Insertion",
    "InverseEpsilon",
    "InversionPSNR",
    "InversionSSIM",
    "MapCosine",
    "MapSSIM",
    "MapSpearman",
    "MaskedScore",
    "MembershipAdvantage",
    "MembershipPrivacy",
    "NoGain",
    "NoLoss",
    "PointingAccuracy",
    "PooledEMD",
    "RandomDeletion",
    "RandomInsertion",
    "RandomisationCheck",
    "SecretAdvantage",
    "SecretChance",
    "SecretMoved",
    "SecretPrivacy",
    "SensitivityMax",
    "Sparsity",
    "Stability",
    "TaskLoss",
    "TopKOverlap",
    "UtilityMoved",
    "WholeScore",
]
