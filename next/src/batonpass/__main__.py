"""`python -m batonpass`: the command, where it is not on the path."""

from batonpass.cli.main import main

if __name__ == "__main__":
    main()
