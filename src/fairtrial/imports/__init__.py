"""Numbers that fairtrial did not measure: anyone's tables, and the outputs of fio and sysbench, as tidy tables.

Owns reading them and saying which line of which file is wrong. It must not know how they are judged.
"""

from fairtrial.imports.asking import STOPPED_BY, Question, ask
from fairtrial.imports.gathering import gather
from fairtrial.imports.rows import Rows
from fairtrial.imports.sources import ImportSource, sources

__all__ = ["STOPPED_BY", "ImportSource", "Question", "Rows", "ask", "gather", "sources"]
