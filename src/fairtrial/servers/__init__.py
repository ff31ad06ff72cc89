"""Server binaries beside the machine's own: found by version, downloaded, unpacked, never installed.

Owns the list of known builds, the cache they are kept in, and how archives are unpacked. Knows nothing of places:
`systems.installation` puts what is here at one.
"""

from __future__ import annotations

from fairtrial.servers.builds import Build, builds, known
from fairtrial.servers.installing import ServerFiles, cache_directory, install, kept
from fairtrial.servers.source import Source

__all__ = ["Build", "ServerFiles", "Source", "builds", "cache_directory", "install", "kept", "known"]
