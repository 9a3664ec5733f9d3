"""The one bisection, against looking at every integer and at every neighbour of a double."""

import math
import sys

import pytest

from bincp._utils.bisection import bracket_doubles, first_integer, last_double, last_integer


@pytest.mark.parametrize("low", [-3, 0, 2])
@pytest.mark.parametrize("width", [-1, 0, 1, 2, 7])
def test_integers_against_looking_at_each(low: int, width: int) -> None:
    high = low + width
    for switch in range(low - 2, high + 3):
        inside = [i for i in range(low, high + 1) if i <= switch]
        assert last_integer(lambda i, s=switch: i <= s, low, high) == max(inside, default=low - 1)
        beyond = [i for i in range(low, high + 1) if i > switch]
        assert first_integer(lambda i, s=switch: i > s, low, high) == min(beyond, default=high + 1)


def test_integers_are_asked_for_within_the_range_only_and_rarely() -> None:
    asked: list[int] = []

    def holds(i: int) -> bool:
        asked.append(i)
        return i <= 10**17

    assert last_integer(holds, 5, 10**18) == 10**17
    assert min(asked) >= 5
    assert max(asked) <= 10**18
    assert len(asked) <= 61


SWITCHES = [0.0, 5e-324, 1e-310, 1e-300, 0.3, 0.5, math.nextafter(1.0, 0.0), 1.0, 7.5, 1e300]


@pytest.mark.parametrize("switch", SWITCHES)
def test_doubles_are_adjacent_about_the_switch(switch: float) -> None:
    inside, outside = bracket_doubles(lambda x: x <= switch, 0.0, sys.float_info.max)
    assert (inside, outside) == (switch, math.nextafter(switch, math.inf))
    assert last_double(lambda x: x <= switch) == switch


def test_a_bracket_that_holds_everywhere_is_its_upper_end() -> None:
    assert bracket_doubles(lambda x: True, 0.25, 0.75) == (0.75, 0.75)


def test_a_bracket_of_neighbours_and_one_that_switches_at_its_end() -> None:
    above = math.nextafter(0.5, 1.0)
    assert bracket_doubles(lambda x: x <= 0.5, 0.5, above) == (0.5, above)
    assert bracket_doubles(lambda x: x < 0.75, 0.5, 0.75) == (math.nextafter(0.75, 0.0), 0.75)


def test_last_double_of_what_holds_nowhere_and_everywhere() -> None:
    assert last_double(lambda x: False) == -math.inf
    assert last_double(lambda x: True) == math.inf
    largest = sys.float_info.max
    assert last_double(lambda x: x < largest) == math.nextafter(largest, 0.0)
