"""`python -m glaunch`."""

from glaunch.cli import main

main()
