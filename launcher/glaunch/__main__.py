"""What starts glaunch, as a command and as `python -m glaunch`; a ^C while it still loads is answered in one line, too."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; ends the process with its exit code."""
    try:
        from glaunch.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("glaunch: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
