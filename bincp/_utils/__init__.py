"""Shared tools: checks of arrays and numbers from callers, exact levels, files, pictures."""
