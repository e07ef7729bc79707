"""Numbers as text, with as many digits as their uncertainty justifies."""

import math

from rmab.report.statistics import Interval

MOST = 9  # maximum number of decimals of a number without an interval
SMALL, SMALLEST = 5e-5, 1e-9  # means between them are written in scientific notation; smaller ones are rounding errors


def number(value: float, digits: int = 4) -> str:
    """Format a number with about `digits` digits and commas between thousands; a dash if it is not finite."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(places, 0)}f}" if places <= MOST else f"{value:.{digits - 1}e}"


def places_of(half: float, least: int) -> int:
    """Return the number of decimals that this uncertainty justifies, at least `least`."""
    if not math.isfinite(half) or half <= 0:
        return max(least, 1)
    return min(max(least, -math.floor(math.log10(half / 2))), 6)  # one digit of the half width, two if it begins with 1


def spread(found: Interval, *, unit: str = "", least: int = 0) -> str:
    """Format as "12.3 (11.9 to 12.7)", with as many decimals as the interval justifies; without one, only the mean."""
    if not math.isfinite(found.mean):
        return "-"
    if not math.isfinite(found.half):
        return f"{number(found.mean)}{unit}"
    if SMALLEST < abs(found.mean) < SMALL and found.half < SMALL:
        return f"{found.mean:.3g}{unit} ({found.low:.3g} to {found.high:.3g})"
    places = places_of(found.half, least)
    mean, low, high = (plain(value, places) for value in (found.mean, found.low, found.high))
    return f"{mean}{unit} ({low} to {high})"


def share(found: Interval) -> str:
    """Format a fraction in per cent, with its interval."""
    scaled = Interval(100 * found.mean, 100 * found.low, 100 * found.high, found.count)
    return spread(scaled, unit="%", least=1) if math.isfinite(found.half) else percent(found.mean)


def percent(value: float) -> str:
    """Format a fraction in per cent, with one decimal or two digits."""
    size = abs(100 * value)
    if not math.isfinite(size):
        return "-"
    return f"{plain(100 * value, 1 if size >= 1 or size == 0 else min(1 - math.floor(math.log10(size)), 6))}%"


def plain(value: float, places: int) -> str:
    """Format a decimal number; a number that rounds to zero is 0, never -0.0."""
    text = f"{value:,.{places}f}"
    return "0" if float(text.replace(",", "")) == 0 else text
