"""The `helios` script and `python -m helios`: an interrupt ends them quietly, also while they are being loaded.

Nothing is imported here before `main` runs: a command takes a second or more to load, the root of the commands too.
"""

import sys


def main() -> None:
    """Run the command line; exit code 130 after an interrupt."""
    try:
        from helios.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
