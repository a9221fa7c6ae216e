"""A real Slurm of several hosts on this one machine, in namespaces of its own: `up.up` makes one, `box.Sandbox` is one that stands.

The shell files are what runs inside, before and below Slurm; everything that can be decided beforehand is decided here and handed to
them as files (`layout`), so that they only mount, start and wait.
"""
