"""What NVIDIA's Xid codes mean, in one sentence each; none of them says that device memory ran out.

Codes and their causes: NVIDIA's "Xid Errors" document for R550 to R570. Where several causes are possible the usual one is told first.
"""

from __future__ import annotations

from collections.abc import Mapping

XIDS: Mapping[int, str] = {
    8: "a kernel ran into the driver's time limit",
    13: "a kernel accessed memory it must not (graphics engine exception): a fault of the program",
    31: "a kernel touched an address that is not mapped (MMU fault): a fault of the program, seldom of the driver",
    32: "invalid or corrupted command stream: driver, or the bus",
    38: "firmware of the driver failed",
    43: "the channel was stopped because of a fault of the program",
    45: "channels were removed because their process died or was killed: a consequence, never the cause",
    48: "an uncorrectable memory error (double-bit ECC): hardware",
    61: "an internal microcontroller stopped: hardware or firmware",
    62: "an internal microcontroller halted: hardware or firmware",
    63: "a row of memory was marked for replacement: hardware, harmless until the next reset",
    64: "a row of memory could not be replaced: hardware",
    68: "the video decoder failed",
    69: "a graphics engine class error: program or driver",
    74: "NVLink failed: hardware or its connection",
    79: "the device fell off the bus: hardware, power or heat",
    92: "many corrected memory errors: hardware that ages",
    94: "an uncorrectable memory error that hit one process only: hardware",
    95: "an uncorrectable memory error that hit all of the device: hardware",
    109: "a context switch took too long: program or driver",
    119: "the device's system processor did not answer in time: firmware",
    120: "the device's system processor reported an error: firmware",
    121: "the link between processor and device had a corrected error: hardware",
    140: "an uncorrectable memory error was found: hardware",
    143: "the device could not be initialised: hardware or firmware",
    149: "NVLink reported an error: hardware or its connection",
    154: "the device needs a reset or a reboot before it can go on: the Xid before it says why",
}
"""Meaning by code."""


def meaning(code: object) -> str | None:
    """What a code says; None where it is not known.

    >>> meaning(79), meaning(7)
    ('the device fell off the bus: hardware, power or heat', None)
    """
    return XIDS.get(code) if isinstance(code, int) else None
