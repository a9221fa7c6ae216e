/* As it is: pyslurm reads all headers from one folder. */
#include_next <slurm/slurmdb.h>
