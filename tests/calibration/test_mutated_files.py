"""Saved rules whose file was changed: none of them loads as another rule."""

import json
import random
import re

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp.calibration._storage import checksum, parse, read
from support import quiet

CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.12))
SCORES = np.random.default_rng(0).random((99, 8))
RULES = [
    ({}, 8),
    ({}, 4),  # losses
    ({"correction": "clopper-pearson", "union": "two-bounds"}, 8),
    ({"correction": "none", "p": "2/3"}, 8),
    ({"tau": 0.5}, 8),
    ({"guarantee": ("training-conditional", "0.1")}, 8),
    ({"passes": "auto"}, 8),
    (
        {
            "poisoned": 1,
            "label_noise": ("count", 1),
            "shift": bincp.shifts.LevyProkhorov(balls.L2(0.01), "0.01"),
            "attacked_calibration": True,
        },
        8,
    ),
    ({"label_noise": ("rate", "0.01"), "shift": bincp.shifts.KL("0.001"), "p": "2/3"}, 8),
]
NUMBER = 100_000  # of mutated files
TOKENS = [b"NaN", b"Infinity", b"9" * 5000, b"1e999", b"true", b"-0", b"1.0", b"null", b"7", b'"8"']
LETTERS = ["\u0661", "\uff11", "\u200b", "\\u0031", "\ud7ff"]
ENCODINGS = ["utf-16", "utf-32", "utf-8-sig", "utf-16-le"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the bytes of saved rules, and the rules that they hold."""
    path = tmp_path_factory.mktemp("rules") / "rule.json"
    files = []
    for options, m_test in RULES:
        rule = bincp.BinCP(CERTIFICATE, **options)
        quiet(rule.calibrate, SCORES, n_classes=3, n_test_samples=m_test).save(path)
        files.append((path.read_bytes(), read(path)[0]))
    for passes in (None, "auto"):  # rules of classes, one of them without points
        rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=4, passes=passes)
        quiet(rule.calibrate, SCORES, np.arange(len(SCORES)) % 3).save(path)
        files.append((path.read_bytes(), read(path)[0]))
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=4, poisoned=1)
    quiet(rule.calibrate, SCORES, np.arange(len(SCORES)) % 3).save(path)
    files.append((path.read_bytes(), read(path)[0]))
    members = np.arange(len(SCORES) * 3).reshape(-1, 3) % 4 < 2
    risk = bincp.RobustRiskControl(
        CERTIFICATE, alpha="1/3", eta="1/10", correction="clopper-pearson"
    )
    mixture = bincp.RobustRiskControl(CERTIFICATE, alpha="1/3", poisoned=1, passes="auto")
    for calibrate in (
        lambda: risk.calibrate(SCORES[:, None] + members[..., None], members),
        lambda: mixture.calibrate(SCORES[:, None] + members[..., None], members),
        lambda: risk.calibrate_exact(np.where(members, 0.75, 0.25), members, tau=0.5),
    ):
        quiet(calibrate).save(path)
        files.append((path.read_bytes(), read(path)[0]))
    return files


# ---- mutations: each takes the bytes of a file and a source of randomness --------------------


def flip_a_bit(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def change_a_byte(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def append(data, rng):
    return data + rng.choice([b"x", b"{}", b"\0", b"]"])


def swap_two_numbers(data, rng):
    first, second = sorted(rng.sample(list(re.finditer(rb"\d+", data)), 2), key=lambda m: m.start())
    between = data[first.end() : second.start()]
    return b"".join(
        [data[: first.start()], second.group(), between, first.group(), data[second.end() :]]
    )


def replace_a_value(data, rng):
    value = rng.choice(list(re.finditer(rb"(?<=: )(\d+|null)", data)))
    return data[: value.start()] + rng.choice(TOKENS) + data[value.end() :]


def repeat_a_key(data, rng):
    lines = data.split(b"\n")
    digit = str(rng.randrange(10)).encode()
    lines.insert(rng.randrange(1, len(lines) - 2), re.sub(rb"\d", digit, rng.choice(lines[1:-3])))
    return b"\n".join(lines)


def encode_otherwise(data, rng):
    return data.decode().encode(rng.choice(ENCODINGS))


def insert_a_letter(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + rng.choice(LETTERS).encode() + data[place + rng.randrange(2) :]


MUTATIONS = [
    flip_a_bit,
    change_a_byte,
    truncate,
    append,
    swap_two_numbers,
    replace_a_value,
    repeat_a_key,
    encode_otherwise,
    insert_a_letter,
]


def test_no_mutated_file_loads_as_another_rule(saved):
    rng, refused = random.Random(0), 0
    for i in range(NUMBER):
        data, rule = rng.choice(saved)
        mutated = MUTATIONS[i % len(MUTATIONS)](data, rng)
        try:
            loaded, _ = parse(mutated, "rule.json")
        except ValueError:
            refused += 1
        else:
            assert loaded == rule, mutated
    assert refused > 0.9 * NUMBER


@pytest.mark.parametrize("which", range(len(RULES)), ids=[str(options) for options, _ in RULES])
def test_fields_must_agree_whatever_the_checksum_says(which, saved, tmp_path):
    """A forger who knows the checksum cannot enlarge the error that a rule may make.

    Changed alone, a field contradicts another one: t / m, the dtype of tau, the range of a count.
    """
    content = json.loads(saved[which][0])
    del content["sha256"]
    m, m_test = content["n_samples_"], content["n_test_samples_"]
    forgeries = {"min_count_": m_test + 1, "n_samples_": 0, "n_test_samples_": 0, "dtype_": "int8"}
    forgeries |= {"n_calibration_": 0, "correction": "mixed", "eta": "2", "p_lower_": (1.5).hex()}
    if content["success_rank_"] is not None:
        forgeries |= {"p_": (0.5 * content["success_rank_"] / m).hex(), "success_rank_": m + 1}
        forgeries |= {"certified_p_": (1.0).hex(), "rank_": content["n_calibration_"] + 1}
    if content["tau"] is None:  # a sampled score of 64 bits
        forgeries["dtype_"] = "float16"
    for field, value in forgeries.items():
        forged = {**content, field: value}
        path = tmp_path / "forged.json"
        path.write_text(json.dumps({**forged, "sha256": checksum(forged)}))
        with pytest.raises(ValueError, match="damaged"):
            read(path)


HEX = float.hex
EARLY, EXACT = 6, 7  # the rule of exact probabilities, behind the sampled ones
CONTRADICTIONS = [
    (0, {"correction": "mixed"}, "`correction` is not one that is known"),
    (0, {"union": "both"}, "`union` is not one that is known"),
    (4, {"p": "1/2"}, "at most one of `p` and `tau` may be given"),
    (2, {"eta": "1/5"}, "`eta` must be below alpha"),
    (3, {"delta": "1/10"}, "`delta` belongs to the mixture correction"),
    (0, {"n_calibration_": 0}, "`n_calibration_` must be in"),
    (0, {"n_calibration_": 2**31}, "`n_calibration_` must be in"),
    (0, {"dtype_": None}, "the fields of sampled scores must be all given or all null"),
    (0, {"min_count_": None}, "the fields of sampled scores must be all given or all null"),
    (EXACT, {"p": "1/2"}, "`p` must not be given with exact probabilities"),
    (EXACT, {"tau": HEX(0.25)}, "`tau_` must be the `tau` that was fixed"),
    (EXACT, {"rank_": 9}, "`rank_` must be that of alpha and n"),
    (EXACT, {"certified_p_": HEX(0.9)}, "probabilities must be in order"),
    (EXACT, {"p_": None}, "a rank or a probability is missing"),
    (EXACT, {"n_calibration_": 8, "rank_": 0}, "rank 0 accepts every label"),
    (0, {"n_samples_": 2**31}, "m and m' must be in"),
    (0, {"min_count_": 9}, "`min_count_` must be in [0, m']"),
    (0, {"success_rank_": 9}, "`success_rank_` must be in [0, m]"),
    (0, {"n_classes_": 0}, "`n_classes_` must be at least 1"),
    (2, {"union": "per-bound", "n_classes_": None}, "`n_classes_` is missing"),
    (0, {"dtype_": "float32"}, "`tau_` must be a value of the dtype in `dtype_`"),
    (4, {"tau_": HEX(0.25)}, "`tau_` must be the `tau` that was fixed"),
    (1, {"n_samples_": 4}, "`losses_`: there must be m + 1 = 5 losses, got 9"),
    (1, {"p": "1/2"}, "losses need the mixture correction, and nothing fixed"),
    (1, {"correction": "none"}, "losses need the mixture correction, and nothing fixed"),
    (1, {"tau_": HEX(-np.inf)}, "k is 0 exactly where tau is -inf"),
    (1, {"min_count_": 0}, "k is 0 exactly where tau is -inf"),
    (1, {"rank_": 9}, "a rule has losses or ranks"),
    (1, {"losses_": [9, 8, 7, 6, 5, 6, 1, 0, 0]}, "`losses_`: losses must not increase"),
    (1, {"losses_": [9, 8, 7, 6, 5, 4, 1, 0, 0]}, "`losses_` must pay for the refusals"),
    (1, {"min_count_": 4}, "`losses_` must pay for the refusals"),
    (0, {"passes": "7/2"}, "`boundaries_` are missing"),
    (2, {"passes": "7/2"}, "`passes` has no proof with these settings"),
    (4, {"passes": "7/2"}, "`passes` has no proof with these settings"),
    (EARLY, {"passes": "1/2"}, "`passes`: '1/2' is not a number of passes in lowest terms"),
    (EARLY, {"passes": None}, "`boundaries_` belong to a rule that stops early"),
    (EARLY, {"boundaries_": None}, "`boundaries_` are missing"),
    (EARLY, {"n_test_samples_": 9}, "`boundaries_` must end after m' draws"),
    (EARLY, {"min_count_": 1}, "`min_count_` must be that of `boundaries_`"),
    (EARLY, {"boundaries_": {"accept": [1, 1], "reject": [0]}}, "`boundaries_`: `reject` must"),
    (EARLY, {"boundaries_": {"accept": [], "reject": []}}, "`boundaries_`: `n_test_samples` must"),
    (0, {"rank_": None}, "a rank or a probability is missing"),
    (0, {"rank_": 11}, "`rank_` must be that of alpha and n"),
    (0, {"rank_": 0}, "`rank_` must be that of alpha and n"),
    (4, {"n_calibration_": 8, "rank_": 0}, "rank 0 accepts every label"),
    (3, {"success_rank_": 5}, "`success_rank_` must be that of p and m"),
    (0, {"success_rank_": 0}, "`success_rank_` must be at least 1"),
    (
        4,
        {"n_calibration_": 8, "rank_": 0, "min_count_": 0, "tau_": HEX(-np.inf)},
        "`success_rank_` must be 0 for rank 0",
    ),
    (0, {"p_": HEX(0.5)}, "`p_` must be t / m"),
    (0, {"p_lower_": HEX(0.25)}, "`p_lower_` belongs to clopper-pearson alone"),
    (2, {"p_lower_": None}, "`p_lower_` belongs to clopper-pearson alone"),
    (0, {"certified_p_": HEX(1.0)}, "probabilities must be in order"),
    (2, {"p_lower_": HEX(0.3)}, "`p_lower_` must be the confidence bound of t and m"),
    (2, {"min_count_": 8}, "`min_count_` must be that of `certified_p_`"),
    (3, {"min_count_": 1}, "`min_count_` must be that of `certified_p_`"),
]


@pytest.mark.parametrize(("which", "fields", "complaint"), CONTRADICTIONS)
def test_each_contradiction_is_found_and_named(which, fields, complaint, saved, tmp_path):
    path = tmp_path / "rule.json"
    if which == EXACT:
        rule = bincp.BinCP(CERTIFICATE).calibrate_exact(np.linspace(0.2, 1, 99), tau=0.5)
        quiet(rule.save, path)
        content = json.loads(path.read_text())
    else:
        content = json.loads(saved[which][0])
    del content["sha256"]
    assert all(content[name] != value for name, value in fields.items())
    forged = {**content, **fields}
    path.write_text(json.dumps({**forged, "sha256": checksum(forged)}))
    with pytest.raises(ValueError, match=re.escape(f"damaged, {complaint}")):
        read(path)
