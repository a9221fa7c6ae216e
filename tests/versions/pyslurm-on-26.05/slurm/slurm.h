/* Slurm 26.05's calls in the form of 25.11, for pyslurm 25.11: a job is named by its number there, by a slurm_step_id_t here. */
#include_next <slurm/slurm.h>
#ifndef GLAUNCH_CALLS_OF_25_11
#define GLAUNCH_CALLS_OF_25_11
#include <string.h>

static inline slurm_step_id_t glaunch_job(uint32_t number)
{
	slurm_step_id_t job = SLURM_STEP_ID_INITIALIZER;

	job.job_id = number;
	return job;
}

static inline int glaunch_pid2jobid(pid_t pid, uint32_t *number)
{
	slurm_step_id_t job = SLURM_STEP_ID_INITIALIZER;
	int code = slurm_pid2jobid(pid, &job);

	*number = job.job_id;
	return code;
}

/* The name is Slurm's own memory now, and pyslurm gives it back with free(): it gets a copy. */
static inline char *glaunch_create_reservation(resv_desc_msg_t *wanted)
{
	char *name = slurm_create_reservation(wanted);

	return name ? strdup(name) : NULL;
}

#define slurm_load_job(answer, number, flags) slurm_load_job(answer, glaunch_job(number), flags)
#define slurm_kill_job(number, signal, flags) slurm_kill_job(glaunch_job(number), signal, flags)
#define slurm_signal_job(number, signal) slurm_signal_job(glaunch_job(number), signal)
#define slurm_suspend(number) slurm_suspend(glaunch_job(number))
#define slurm_resume(number) slurm_resume(glaunch_job(number))
#define slurm_requeue(number, flags) slurm_requeue(glaunch_job(number), flags)
#define slurm_notify_job(number, text) slurm_notify_job(glaunch_job(number), text)
#define slurm_job_node_ready(number) slurm_job_node_ready(glaunch_job(number))
#define slurm_get_end_time(number, end) slurm_get_end_time(glaunch_job(number), end)
#define slurm_get_rem_time(number) slurm_get_rem_time(glaunch_job(number))
#define slurm_pid2jobid(pid, number) glaunch_pid2jobid(pid, number)
#define slurm_create_reservation(wanted) glaunch_create_reservation(wanted)
#define slurm_free_ctl_conf(conf) slurm_free_conf(conf) /* another name for the same */
#endif
