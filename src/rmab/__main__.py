"""`python -m rmab`: the command line."""

from rmab.cli import main

if __name__ == "__main__":
    main()
