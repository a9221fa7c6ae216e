"""ranks.tsv of an attempt, and a node's part of it while ranks start: rank TAB host TAB local rank TAB process id."""

from glaunch.logs import RankRow


def parse_ranks(text: str) -> tuple[RankRow, ...]:
    """The rows in the file's order. A line that is not whole is left out: it is being written just now, or the disk was full then."""
    rows = []
    for line in text.split("\n"):
        words = line.split("\t")
        if len(words) == 4 and words[1] and all(word.isascii() and word.isdigit() for word in (words[0], words[2], words[3])):
            rows.append(RankRow(int(words[0]), words[1], int(words[2])))
    return tuple(rows)
