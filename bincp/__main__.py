"""``python -m bincp``: the command line."""

import sys

from bincp.cli import main

if __name__ == "__main__":
    sys.exit(main())
