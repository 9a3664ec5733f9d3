"""Noisy graphs by their definition, one coin after the other, in plain Python."""

from collections import deque
from fractions import Fraction


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b % 2**32, (a >> 32) ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


class Noise:
    """The numbers of one input and draw. Kinds: 0 coins and 1 gaps of pairs, 2 and 3 of bits."""

    def __init__(self, seed, phase, id_, draw):
        self.seed, self.phase, self.id, self.draw = seed, phase, id_, draw

    def number(self, kind, w, i):
        q = w * 2**28 + self.id
        stream = 16 * kind + 9 + self.phase
        counter = (i, self.draw, q % 2**32, stream << 24 | q >> 32)
        word = philox(counter, (self.seed % 2**32, self.seed >> 32))
        return sum(part << 32 * (3 - place) for place, part in enumerate(word))

    def deletes(self, kind, w, u, p):
        return p == 1 or self.number(kind, w, u) < Fraction(p) * 2**128 // 1

    def hits(self, kind, w, length, p):
        bounds, a, i, found = gap_bounds(p), 0, 0, set()
        while p > 0:
            word = self.number(kind + 1, w, i)
            g = sum(1 for bound in bounds if bound > word)
            a, i = a + g, i + 1
            if a >= length:
                break
            if g < len(bounds):
                found.add(a)
                a += 1
        return found


_bounds = {}


def gap_bounds(p):
    """The nearest integers to 2^128 (1 - p)^g, from exact fractions rounded to 400 bits."""
    if p not in _bounds:
        size = 1024
        while size < min(16 / Fraction(p), 65536) if p else False:
            size *= 2
        bounds, power = [], Fraction(1)
        for _ in range(size if p else 0):
            power = Fraction(round(power * (1 - Fraction(p)) * 2**400), 2**400)
            bounds.append(round(power * 2**128))
        _bounds[p] = bounds
    return _bounds[p]


def attribute_row(noise, bits, w, length, p_plus, p_minus):
    """The columns of the ones of a row of `bits`, a set of columns."""
    kept = {u for u in bits if not noise.deletes(2, w, u, p_minus)}
    return sorted(kept | (noise.hits(2, w, length, p_plus) - bits))


def graph(noise, rows, order, p_plus, p_minus, *, hops=None, degrees=True, directed=False):
    """Explore from the nodes in `order`, the target first; all of them where hops is None.

    Returns nodes, the degree of each and the set of edges (source, target), by node numbers.
    """
    n, explored, edges = len(rows), set(), set()
    queue = deque(order if hops is None else order[:1])
    distance = dict.fromkeys(queue, 0)
    nodes = list(queue)
    while True:
        if not queue:
            left = [] if hops is not None else [u for u in range(n) if u not in distance]
            if not left:
                break
            queue.append(left[0])
            nodes.append(left[0])
            distance[left[0]] = 0
        w = queue.popleft()
        depth = distance[w]
        if hops is not None and depth >= hops + degrees:
            continue
        found = set()
        hits = noise.hits(0, w, n, p_plus)
        for u in range(n):
            if u == w or (u in explored and not directed):
                continue
            if (not noise.deletes(0, w, u, p_minus)) if u in rows[w] else u in hits:
                found.add(u)
        explored.add(w)
        for u in sorted(found):
            edges |= {(u, w)} if directed else {(u, w), (w, u)}
            if u not in distance and (hops is None or depth < hops):
                distance[u] = depth + 1
                queue.append(u)
                nodes.append(u)
    degree = {w: sum(1 for edge in edges if edge[1] == w) for w in nodes}
    inside = {(a, b) for a, b in edges if a in degree and b in degree}
    return nodes, degree, inside
