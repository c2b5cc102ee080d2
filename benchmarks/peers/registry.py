"""All peers by name, in the order of the tables."""

from __future__ import annotations

from collections.abc import Mapping

from .annif import Annif
from .classic import Classic
from .mti import Mti
from .napkinxc import NapkinXC
from .omikuji import Omikuji
from .ours import Ours
from .pecos import Pecos
from .peer import Peer

OURS = "ours"
PEERS: Mapping[str, Peer] = {
    peer.name: peer for peer in (Ours(), Omikuji(), Pecos(), NapkinXC(), Annif(), Classic(), Mti())
}
