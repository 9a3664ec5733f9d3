"""Runs on disk: scores, counts or votes in parts that many processes write and may be killed at.

A folder holds ``manifest.json``, which says what decides the numbers and how they are cut into
parts, ``seed``, and the parts. A file has its name only once it is complete: it is written under
another name, and gets its own by a hard link, which the first of several processes wins. So there
are no locks and nothing is ever half written, and a process needs to know nothing of the others.
"""
