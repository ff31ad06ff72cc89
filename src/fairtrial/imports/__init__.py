"""Numbers that fairtrial did not measure: anyone's tables, and the outputs of benchmark tools, as tidy tables.

Owns reading them and saying which line of which file is wrong. It must not know how they are judged.
"""

from fairtrial.imports.asking import STOPPED_BY, Question, ask
from fairtrial.imports.gathering import gather
from fairtrial.imports.numerals import Numerals
from fairtrial.imports.outputs import READERS
from fairtrial.imports.reader import ImportSource
from fairtrial.imports.rows import Rows
from fairtrial.imports.sources import sources

__all__ = ["READERS", "STOPPED_BY", "ImportSource", "Numerals", "Question", "Rows", "ask", "gather", "sources"]
