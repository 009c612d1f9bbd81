"""`python -m leaflearn` is the command `leaflearn`."""

from leaflearn.cli.main import main

if __name__ == "__main__":
    main()
