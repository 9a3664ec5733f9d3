"""The noise of calibration, of test and of tuning: no block of one can be a block of another."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bincp import smoothing
from bincp.noise import Keys, _keys, draw
from dump import noise_cases

PHASES = ("calibration", "test", "tuning")
STREAMS = {phase: [*_keys._NOISE_STREAMS[phase], _keys._SCORE_STREAMS[phase]] for phase in PHASES}
MASK = 2**32 - 1


def counter_of(block, seed):
    """The counter that Philox4x32-10 made a block of four words from: its ten rounds undone."""
    c = list(block)
    for i in reversed(range(10)):
        keys = (seed + i * 0x9E3779B9) & MASK, ((seed >> 32) + i * 0xBB67AE85) & MASK
        c0 = c[3] * pow(0xD2511F53, -1, 2**32) & MASK
        c2 = c[1] * pow(0xCD9E8D57, -1, 2**32) & MASK
        c1 = c[0] ^ (0xCD9E8D57 * c2 >> 32) ^ keys[0]
        c3 = c[2] ^ (0xD2511F53 * c0 >> 32) ^ keys[1]
        c = [c0, c1, c2, c3]
    return tuple(c)


@given(
    seed=st.integers(0, 2**64 - 1),
    id=st.integers(0, 2**56 - 1),
    number=st.integers(0, 2**31 - 1),
    phase=st.sampled_from(PHASES),
    part=st.sampled_from([0, 1]),
)
@settings(deadline=None, max_examples=60)
def test_noise_names_the_phase_it_was_made_for(seed, id, number, phase, part):  # noqa: A002
    """Each block of words can be turned back into its counter, so blocks of equal counters only
    are equal; and the counter holds the stream of the phase."""
    drawn = Keys(seed, phase, [id], [number]).words(64, part=part)[0]
    stream = STREAMS[phase][part]
    for words, second in ((drawn >> np.uint64(32), 0), (drawn & np.uint64(MASK), 128)):
        for i in range(16):
            counter = counter_of(words[i::16].tolist(), seed)
            assert counter == (i, number, id & MASK, stream + second << 24 | id >> 32)


def test_phases_share_no_stream():
    """64 is added to a stream for categories, 128 for second words; a stream has eight bits."""
    used = {
        phase: {s + more for s in streams for more in (0, 64, 128, 192)}
        for phase, streams in STREAMS.items()
    }
    assert set(used) == set(_keys.PHASES)
    assert [len(streams) for streams in used.values()] == [12, 12, 12]
    assert len(set().union(*used.values())) == 36
    assert max(set().union(*used.values())) < 256


def test_graphs_have_streams_of_their_own():
    """Coins and gaps of pairs and of bits, for each phase; others are no 9 to 11, plus 16 i."""
    graphs = {16 * kind + 9 + phase for kind in range(4) for phase in range(3)}
    assert len(graphs) == 12
    others = {stream for streams in STREAMS.values() for stream in streams}
    others |= set(_keys._SELECTION_STREAMS.values())
    assert max(others) < 16
    assert not graphs & {stream + 16 * more for stream in others for more in range(16)}


def test_every_scheme_is_among_the_cases():
    elsewhere = {
        smoothing.Smoothing,
        smoothing.GraphFlip,  # nodes have tests of their own
        smoothing.Partition,  # of training data
        smoothing.MessageInterception,  # without a sampler
    }
    known = {getattr(smoothing, name) for name in smoothing.__all__} - elsewhere
    assert known == {type(scheme) for scheme, _ in noise_cases()}


@pytest.mark.parametrize("phase", PHASES)
def test_the_phase_of_noise_is_its_streams_and_nothing_else(phase, monkeypatch):
    """With the streams of another phase it would be the noise of that phase, for every scheme."""
    cases = [(scheme, np.asarray(inputs[0], float)) for scheme, inputs in noise_cases()]

    def drawn(phase):
        return [draw(scheme, x, 2, phase=phase, seed=9) for scheme, x in cases]

    wanted = drawn(phase)
    for other in set(PHASES) - {phase}:
        with monkeypatch.context() as patch:
            patch.setitem(_keys._NOISE_STREAMS, other, _keys._NOISE_STREAMS[phase])
            patch.setitem(_keys._SELECTION_STREAMS, other, _keys._SELECTION_STREAMS[phase])
            for a, b in zip(wanted, drawn(other), strict=True):
                np.testing.assert_array_equal(a, b)


def test_every_scheme_draws_other_noise_for_every_phase():
    for scheme, inputs in noise_cases():
        x = np.asarray(inputs[0], float)
        several = {phase: draw(scheme, x, 64, phase=phase, seed=3) for phase in PHASES}
        for a, b in itertools.combinations(several.values(), 2):
            is_random = bool((a != a[:, :1]).any())
            assert np.array_equal(a, b) != is_random, scheme
