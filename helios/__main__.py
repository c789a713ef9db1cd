"""The `helios` script and `python -m helios`: an interrupt ends them quietly, also while they are being loaded.

Nothing is imported here before `main` runs: a command takes a second or more to load, the root of the commands too.
"""

import os
import sys


def main() -> None:
    """Run the command line; exit code 130 after an interrupt."""
    try:
        from helios.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def leave_working_folder() -> None:
    """Take the working folder, which `python -m` puts first, off the import path, also of processes that are started.

    A folder `training` or a file `json.py` of the user's would stand in for ours. A checkout that is run without an
    installation is found there, and stays.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != os.path.realpath(home):
        del sys.path[0]
        os.environ["PYTHONSAFEPATH"] = "1"


if __name__ == "__main__":
    leave_working_folder()
    main()
