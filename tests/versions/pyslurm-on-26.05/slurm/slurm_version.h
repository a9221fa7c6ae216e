/* pyslurm's setup.py looks for this line as text and wants 25.11; the compiler goes by Slurm's own number, which follows. */
#ifndef GLAUNCH_ASKED_VERSION
#define GLAUNCH_ASKED_VERSION
#define SLURM_VERSION_NUMBER 0x190b00
#undef SLURM_VERSION_NUMBER
#endif
#include_next <slurm/slurm_version.h>
