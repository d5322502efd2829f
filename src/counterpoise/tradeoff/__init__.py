"""Below the watershed: requirements, compatibility matrices, policies and the decision. Never imports torch."""

from counterpoise.tradeoff.choice import Choice, Decision, Panel, PartyView, Standing, choose
from counterpoise.tradeoff.front import front
from counterpoise.tradeoff.ledger import Budget, budgets
from counterpoise.tradeoff.matrix import build, score
from counterpoise.tradeoff.modes import MEASURED, MODES, PAPER, Mode
from counterpoise.tradeoff.policies import POLICIES, Egalitarian, Nash, Paper, Policy, Quorum, Unanimous, weights
from counterpoise.tradeoff.relax import Infeasible, Relaxation
from counterpoise.tradeoff.requirements import Bound, Extreme, Requirement, parse, refuse_unknown
from counterpoise.tradeoff.sensitivity import Shake, shaken, slopes

__all__ = [
    "MEASURED",
    "MODES",
    "PAPER",
    "POLICIES",
    "Bound",
    "Budget",
    "Choice",
    "Decision",
    "Egalitarian",
    "Extreme",
    "Infeasible",
    "Mode",
    "Nash",
    "Panel",
    "Paper",
    "PartyView",
    "Policy",
    "Quorum",
    "Relaxation",
    "Requirement",
    "Shake",
    "Standing",
    "Unanimous",
    "budgets",
    "build",
    "choose",
    "front",
    "parse",
    "refuse_unknown",
    "score",
    "shaken",
    "slopes",
    "weights",
]
