"""The two modes: which measured quantities stand for privacy, explainability and utility. Never mixed in one number."""

from __future__ import annotations

from dataclasses import dataclass

from counterpoise._check import one_of


@dataclass(frozen=True)
class Mode:
    """Names the three quantities of the trade-off, and whether they mean the same for every mechanism.

    `privacy`, `explanation` and `utility_loss` can be required by these words in either mode.
    """

    name: str
    privacy: str
    explanation: str
    utility_loss: str
    comparable: bool

    def resolve(self, quantity: str) -> str:
        """The measurement a word of a requirement stands for in this mode."""
        words = {"privacy": self.privacy, "explanation": self.explanation, "utility_loss": self.utility_loss}
        return words.get(quantity, quantity)


PAPER = Mode("paper", "privacy_gain", "explainability_gain", "utility_loss", comparable=False)
"""The source's formulas, exactly. 1/epsilon and 1 - C/I are not on one scale: mechanisms are not compared."""

MEASURED = Mode("measured", "membership_privacy", "explanation_quality", "task_loss", comparable=True)
"""A real attack, the real faithfulness and stability of the maps, the real loss of accuracy: one scale for all."""

MODES = {mode.name: mode for mode in (PAPER, MEASURED)}


def mode_named(name: str) -> Mode:
    """The mode of that name."""
    one_of(MODES, mode=name)
    return MODES[name]
