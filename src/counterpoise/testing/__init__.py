"""Property suites for parts of your own: `check_mechanism`, `check_explainer`, `check_measure`.

Each makes its own small task, takes a second or two, and raises an AssertionError whose sentence says which
promise of `counterpoise.interface` is broken. Call them from your tests: `check_explainer(Edges())`.
"""

from counterpoise.testing._bed import small_task
from counterpoise.testing.explainer import check_explainer
from counterpoise.testing.measure import check_measure
from counterpoise.testing.mechanism import check_mechanism

__all__ = ["check_explainer", "check_measure", "check_mechanism", "small_task"]
