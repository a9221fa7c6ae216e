"""Which launches a word on the command line means: a job's id, a launch's, a name, `12;red` on another cluster."""

import re
from collections.abc import Sequence

from glaunch.errors import UsageError
from glaunch.history import Submission
from glaunch.job_array import parse_array


def find_all(submissions: Sequence[Submission], word: str | None) -> tuple[Submission, ...]:
    """All submissions that a word means, oldest first: job ids mean themselves (`12`, `12_3`, `12:15`), a name, a launch's id or no word
    all parts of a launch."""
    submissions, word = _on_cluster(submissions, word)
    usable = [submission for submission in submissions if submission.job_id]
    ids = [re.split(r"[_+.]", part)[0] for part in (word or "").split(":")]
    by_id = {submission.job_id: submission for submission in usable}
    if all(part in by_id for part in ids):
        return tuple(by_id[part] for part in dict.fromkeys(ids))
    found = find(submissions, word)
    if found is None or not found.job_id:
        return ()
    if not found.launch or (found.id == word != found.launch):
        return (found,)
    return tuple(one for one in usable if one.launch == found.launch)


def _on_cluster(submissions: Sequence[Submission], word: str | None) -> tuple[Sequence[Submission], str | None]:
    """`12;red` is job 12 of those on cluster red."""
    word, semicolon, cluster = (word or "").partition(";")
    return ([one for one in submissions if one.cluster == cluster] if semicolon else submissions), word or None


def slurms_word(submissions: Sequence[Submission], word: str | None) -> str | None:
    """`12_1345` as Slurm knows it, `15_345`, where job 12 is the first part of an array and 1345 an index that was asked for; every
    other word stays as it is. Raises UsageError for an index that the array does not have: Slurm would say nothing."""
    match = re.fullmatch(r"(\d+)_(\d+)", word or "")
    first = next((one for one in submissions if match and one.job_id == match[1]), None)
    if match is None or first is None or first.launch != first.id:
        return word
    index = int(match[2])
    for part in (one for one in submissions if one.launch == first.id and one.job_id):
        if any(index in run for run in parse_array(part.tasks).runs):
            return f"{part.job_id}_{index - part.offset}"
    whole = ",".join(part.tasks for part in submissions if part.launch == first.id)
    raise UsageError(f"there is no array task {word}: the array has {whole}", hint="glaunch status")


def find(submissions: Sequence[Submission], word: str | None) -> Submission | None:
    """The submission that a word on the command line means: a job id (also of an array task), a submission id, or a name; without a
    word the last one that Slurm took. Of several with one name the newest."""
    submissions, word = _on_cluster(submissions, word)
    usable = [submission for submission in submissions if submission.job_id]
    if word is None:
        return usable[-1] if usable else None
    number = re.split(r"[_+.]", word)[0]
    for matches in (
        [one for one in usable if one.job_id == number],
        [one for one in submissions if one.id == word],
        [one for one in usable if one.name == word],
    ):
        if matches:
            return matches[-1]
    return None
