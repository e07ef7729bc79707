"""`python -m rmab`: the command line."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the current folder first on the path. As with `rmab`, it is looked at only when a name asks for it.
    here, home = Path(sys.path[0] or ".").resolve(), Path(__file__).resolve().parents[1]
    if not sys.flags.safe_path and here == Path.cwd() and here != home:
        del sys.path[0]

from rmab.cli import main

if __name__ == "__main__":
    main()
