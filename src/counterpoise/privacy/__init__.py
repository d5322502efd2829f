"""Training with differential privacy: a plan, and what follows from it.

Nothing private happens outside a `Plan`: it alone hands out the sampler, the noise, the denominator and the epsilon.
"""

from counterpoise.privacy.accounting import account, compose, spend
from counterpoise.privacy.audit import AuditError, audit_step
from counterpoise.privacy.clipping import Automatic, ClippedGradient, Flat, PerLayer, clipped_gradient
from counterpoise.privacy.fitting import Schedule, fit, private_gradient
from counterpoise.privacy.isolation import check_isolation, convert
from counterpoise.privacy.noise import Gaussian, Laplace
from counterpoise.privacy.plan import Plan
from counterpoise.privacy.sampling import FullBatch, Poisson, Shuffled
from counterpoise.privacy.tuning import draw_trials, select_cost

__all__ = [
    "AuditError",
    "Automatic",
    "ClippedGradient",
    "Flat",
    "FullBatch",
    "Gaussian",
    "Laplace",
    "PerLayer",
    "Plan",
    "Poisson",
    "Schedule",
    "Shuffled",
    "account",
    "audit_step",
    "check_isolation",
    "clipped_gradient",
    "compose",
    "convert",
    "draw_trials",
    "fit",
    "private_gradient",
    "select_cost",
    "spend",
]
