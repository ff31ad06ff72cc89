"""Published studies, analysed again from their raw data: what they print, and where they disagree with their data."""

from fairtrial.analyse.publications.checking import Checked, Disagreement, check
from fairtrial.analyse.publications.comparisons import Compared, Table, tables
from fairtrial.analyse.publications.facts import facts
from fairtrial.analyse.publications.reading import Dataset, load, names

__all__ = ["Checked", "Compared", "Dataset", "Disagreement", "Table", "check", "facts", "load", "names", "tables"]
