"""glaunch: launch multi-node jobs on Slurm, placed by the network they will use."""

__version__ = "0.1.0"
