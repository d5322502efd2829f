"""Mean, variance and their standard errors, in one pass over the samples and in constant memory."""

from __future__ import annotations

from torch import Tensor


class Moments:
    """Sums of the powers of (sample - pilot) in float64, the pilot being the mean of the first samples.

    About a pilot near the mean, nothing cancels: E[g^2] - E[g]^2 of the samples themselves can turn negative.
    Two of them with one pilot are merged by adding their sums.
    """

    def __init__(self, order: int, pilot: Tensor | None = None) -> None:
        self.order, self.pilot, self.count = order, pilot, 0
        self.sums: list[Tensor] = []

    def add(self, samples: Tensor) -> None:
        """More samples, [n, samples, …]."""
        if self.pilot is None:
            self.pilot = samples.mean(1, keepdim=True)
        off = samples - self.pilot
        powers = [off]
        for _ in range(self.order - 1):
            powers.append(powers[-1] * off)
        found = [power.sum(1).double() for power in powers]
        self.sums = [old + new for old, new in zip(self.sums, found, strict=True)] if self.sums else found
        self.count += samples.shape[1]

    def merged(self, other: Moments) -> Moments:
        """All samples of both, which have the same pilot."""
        both = Moments(self.order, self.pilot)
        both.count = self.count + other.count
        both.sums = [one + two for one, two in zip(self.sums, other.sums, strict=True)]
        return both

    def of(self, chosen: Tensor) -> Moments:
        """The chosen images' only."""
        part = Moments(self.order, None if self.pilot is None else self.pilot[chosen])
        part.count = self.count
        part.sums = [power[chosen] for power in self.sums]
        return part

    def mean(self) -> Tensor:
        """The mean, [n, …]."""
        assert self.pilot is not None
        return self.pilot[:, 0].double() + self.sums[0] / self.count

    def variance(self) -> Tensor:
        """The unbiased variance; 0 of one sample."""
        off = self.sums[0] / self.count
        return ((self.sums[1] - self.count * off.square()) / max(1, self.count - 1)).clamp(min=0)

    def error_of_mean(self) -> Tensor:
        """The standard error of the mean."""
        return (self.variance() / self.count).sqrt()

    def error_of_variance(self) -> Tensor:
        """The standard error of the variance, from the fourth central moment."""
        n, off = self.count, self.sums[0] / self.count
        second, third, fourth = (power / n for power in self.sums[1:4])
        central = fourth - 4 * off * third + 6 * off.square() * second - 3 * off**4
        share = (n - 3) / max(1, n - 1)
        return ((central - share * self.variance().square()) / n).clamp(min=0).sqrt()
