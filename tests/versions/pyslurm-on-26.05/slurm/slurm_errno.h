/* Slurm 26.05 has this error no more; pyslurm 25.11 still names it. */
#include_next <slurm/slurm_errno.h>
#ifndef ESLURM_ERROR_ON_DESC_TO_RECORD_COPY
#define ESLURM_ERROR_ON_DESC_TO_RECORD_COPY 2007
#endif
