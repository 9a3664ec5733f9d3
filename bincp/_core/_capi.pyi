from typing import Any

API: Any
