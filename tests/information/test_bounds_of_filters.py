"""What holds for every filter of every discrete world, and what only looks as if it did.

A = I(S;Q), B = I(U;X|Q), K = I(U;S) - I(U;S|X). Each statement that is kept is held against hundreds of worlds, and
beside it stands the nearby one that many of them refute.
"""

from __future__ import annotations

import numpy as np
import pytest
from discrete_worlds import worlds

from counterpoise.information.discrete import (
    Values,
    conditional_information,
    divergence,
    information,
    largest_sum,
    leak_and_loss,
    least_sum,
    seen,
)

WORLDS = list(worlds(600))
ROUND = 1e-10


def posteriors(joint: Values, channel: Values) -> tuple[Values, Values, Values, Values, Values]:
    """p(x, q), p(s), p(s|q), p(u|x), p(u|q)."""
    pair = joint.sum((0, 1))[:, None] * channel
    with_q = joint @ channel

    def given(table: Values) -> Values:
        """Columns as distributions, one a row; even where nothing is ever seen."""
        total = table.sum(0)
        return np.where(total > 0, table / np.where(total > 0, total, 1), 1 / len(table)).T

    prior = joint.sum((0, 2))
    return pair, prior, given(with_q.sum(0)), given(joint.sum(1)), given(with_q.sum(1))


def mean(values: Values, weights: Values) -> float:
    """Over what has a weight: elsewhere a divergence may be infinite."""
    return float((values[weights > 0] * weights[weights > 0]).sum())


def test_the_two_terms_of_the_loss_are_informations() -> None:
    """E KL(p(s|q) || p(s)) = I(S;Q), and E KL(p(u|x) || p(u|q)) = I(U;X|Q) = I(U;X) - I(U;Q)."""
    for joint, channel in WORLDS:
        pair, prior, s_q, u_x, u_q = posteriors(joint, channel)
        leak, loss = leak_and_loss(joint, channel)
        assert mean(divergence(s_q, prior[None]), pair.sum(0)) == pytest.approx(leak, abs=ROUND)
        assert mean(divergence(u_x[:, None], u_q[None]), pair) == pytest.approx(loss, abs=ROUND)
        assert information(joint.sum(1)) - information(joint.sum(1) @ channel) == pytest.approx(loss, abs=ROUND)


def test_k_is_what_images_tell_of_the_utility_beyond_the_secret() -> None:
    """I(U;S) - I(U;S|X) = I(U;X) - I(U;X|S); without noise it is I(U;S)."""
    for joint, _ in WORLDS:
        given_secret = conditional_information(joint.transpose(0, 2, 1))
        assert least_sum(joint) == pytest.approx(information(joint.sum(1)) - given_secret, abs=ROUND)
        clear = joint.sum(2)
        assert least_sum(seen(clear)) == pytest.approx(information(clear), abs=ROUND)


def test_the_sum_lies_between_its_bounds_and_not_below_k() -> None:
    above, room = 0, 0
    for joint, channel in WORLDS:
        total, least = sum(leak_and_loss(joint, channel)), least_sum(joint)
        assert least - ROUND <= total <= largest_sum(joint) + ROUND
        above += total > least + 1e-3
        room += total < largest_sum(joint) - 1e-3
    assert above > 500  # "A + B <= K" is refuted by nearly all
    assert room > 500


def test_the_objective_is_at_least_that_of_the_line_and_no_more_can_be_said() -> None:
    closest = np.inf
    for joint, channel in WORLDS:
        leak, loss = leak_and_loss(joint, channel)
        least = max(0.0, least_sum(joint))
        for alpha in (0.05, 0.3, 0.5, 0.8):
            objective, bound = (1 - alpha) * loss**2 + alpha * leak**2, alpha * (1 - alpha) * least**2
            assert objective >= bound - ROUND
            if bound > 1e-3:
                closest = min(closest, objective / bound)
    assert closest < 1.2


def test_without_the_markov_chain_the_lower_bound_is_lost() -> None:
    """A filter that was told U can keep it and tell nothing else: the bounds are about filters that see X alone."""
    joint = np.zeros((2, 2, 1))
    joint[:, :, 0] = [[0.3, 0.2], [0.2, 0.3]]
    told = joint.sum(2).T  # [s, q = u]
    assert information(told) + 0 == pytest.approx(information(joint.sum(2)))
    noise = np.full((2, 2, 2), 1 / 8)  # X independent of U xor S hides nothing there: K < 0
    assert least_sum(noise) == pytest.approx(0)
    xor = np.zeros((2, 2, 2))
    for u in (0, 1):
        for s in (0, 1):
            xor[u, s, u ^ s] = 1 / 4
    assert least_sum(xor) == pytest.approx(-np.log(2))


def test_both_divergences_bound_how_far_each_posterior_moves() -> None:
    """Pinsker, q by q, both ways round: TV(p(s|q), p(s)) <= sqrt(min(KL, reverse KL) / 2); half of it is too little."""
    beyond = 0
    for joint, channel in WORLDS:
        pair, prior, s_q, u_x, u_q = posteriors(joint, channel)
        for first, second, weights in ((s_q, prior[None], pair.sum(0)), (u_x[:, None], u_q[None], pair)):
            distance = abs(first - second).sum(-1)[weights > 0] / 2
            least = np.minimum(divergence(first, second), divergence(second, first))[weights > 0].clip(0)
            assert (distance <= np.sqrt(least / 2) + 1e-7).all()
            beyond += bool((distance > 0.8 * np.sqrt(least / 2) + 1e-7).any())
    assert beyond > 100


def test_the_reverse_divergences_have_no_such_upper_bounds() -> None:
    """E KL(p(s) || p(s|q)) is not at most I(S;Q), nor the reversed sum at most I(X;U,S): many worlds refute them."""
    single = both = 0
    for joint, channel in WORLDS:
        pair, prior, s_q, u_x, u_q = posteriors(joint, channel)
        leak, _ = leak_and_loss(joint, channel)
        secret = mean(divergence(prior[None], s_q), pair.sum(0))
        useful = mean(divergence(u_q[None], u_x[:, None]), pair)
        single += secret > leak + 1e-6
        both += secret + useful > largest_sum(joint) + 1e-6
    assert single > 400
    assert both > 100
