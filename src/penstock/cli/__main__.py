"""`python -m penstock.cli`, the same as `penstock`."""

from __future__ import annotations

import sys

from penstock.cli.entry import main

sys.exit(main())
