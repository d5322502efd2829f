"""What every test may count on."""

from __future__ import annotations

import signal

# A suite that a shell runs in the background inherits a Ctrl-C that is ignored, and hands that on to what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
