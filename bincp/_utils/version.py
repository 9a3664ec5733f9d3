"""The version of the package, which is written only here."""

__version__ = "0.2.0.dev0"
