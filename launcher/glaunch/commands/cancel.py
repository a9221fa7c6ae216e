"""`glaunch cancel`: end jobs that glaunch submitted."""

import click

HELP = """Cancel jobs that you launched with glaunch, by job id (also of an array task), name or submission id.

\b
Examples:
  glaunch cancel 4711
  glaunch cancel 4712_3          one task of an array
  glaunch cancel train           the last one of that name; of an array all its parts
"""


@click.command(help=HELP)
@click.argument("jobs", nargs=-1, required=True)
def command(jobs: tuple[str, ...]) -> int:
    from glaunch import pipeline
    from glaunch.commands.looking import launches, rest_of_arrays, the_jobs
    from glaunch.meant import slurms_word
    from glaunch.talk import talk

    world = pipeline.open_world()
    submissions = launches(world)
    ids: dict[str, list[str]] = {}
    for typed in jobs:
        word = slurms_word(submissions, typed) or typed
        for submission in the_jobs(submissions, word):
            if submission.state == "over":
                talk(f"job {submission.job_id} is over: {submission.detail}")
            else:
                word = word.partition(";")[0]
                job_id = word if word.split("_")[0] == submission.job_id else submission.job_id
                ids.setdefault(submission.cluster, []).append(job_id)
    for cluster, theirs in ids.items():
        world.slurm.on(cluster).cancel(theirs)
        for job_id in theirs:
            talk(f"job {job_id}: asked Slurm to cancel it")
    for submission in rest_of_arrays(submissions, [job_id for theirs in ids.values() for job_id in theirs]):
        talk(f"job {submission.job_id}, the part {submission.tasks} of the same array, goes on: glaunch cancel {submission.job_id}")
    return 0
