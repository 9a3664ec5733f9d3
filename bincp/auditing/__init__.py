"""Audits: what a plain conformal predictor guarantees under attack when it runs on noisy inputs."""

from bincp.auditing._audit import Audit, audit

__all__ = ["Audit", "audit"]
