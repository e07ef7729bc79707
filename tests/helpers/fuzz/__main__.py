"""Run the fuzzer: `python tests/helpers/fuzz --help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # of this package and of the helpers of the tests

from fuzz.driver import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
