"""Whether anyone's column holds shares, and of what: by its name and its values. It must not know how they are judged.

A name alone does not tell 0.99 from 99 %, and near the total an equivalence depends on which of the two it is.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

_PERCENT: Final = frozenset({"%", "percent", "percentage", "pct"})
_SHARE: Final = frozenset({"share", "fraction", "utilization", "utilisation", "availability"})
_JOINED: Final = frozenset({"hitratio", "hitrate", "missratio", "missrate"})
_OF: Final = frozenset({"hit", "hits", "miss", "misses"})
_RATIO: Final = frozenset({"ratio", "rate"})
_OTHER_UNITS: Final = frozenset({"s", "ms", "us", "ns", "bytes", "usd", "eur"})  # a name that ends so is of no share
_WHOLE_PERCENT: Final = 100.0


def unit(name: str, values: pl.Series) -> str:
    """`share` (of 1), `%` or nothing: `analyse.shares` judges what is left of the total, and reports print it."""
    numbers = values.drop_nans().to_list()
    percent = not _PERCENT.isdisjoint(_words(name))
    if not (percent or _is_share(name)) or not numbers or max(numbers) > _WHOLE_PERCENT:
        return ""
    if min(numbers) < 0:
        return "%" if percent else ""
    return "%" if percent or max(numbers) > 1 else "share"


def _is_share(name: str) -> bool:
    words = _words(name)
    if "per" in words or not _OTHER_UNITS.isdisjoint(words[-1:]):
        return False
    of_look_ups = not _OF.isdisjoint(words) and not _RATIO.isdisjoint(words)
    return of_look_ups or not (_SHARE | _JOINED).isdisjoint(words)


def _words(name: str) -> list[str]:
    """In small letters; `cacheHitRate` has three."""
    return re.findall(r"[a-z%]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
