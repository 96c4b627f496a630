"""`python -m trace_cli`, for machines where the script is not on the PATH."""

from __future__ import annotations

import sys

from trace_cli.main import main

sys.exit(main())
