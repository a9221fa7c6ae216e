"""ranks.tsv of an attempt: rank TAB host TAB local rank, and more columns that are not needed here."""

from glaunch.errors import ParseError
from glaunch.logs import RankRow


def parse_ranks(text: str, where: str = "ranks.tsv") -> tuple[RankRow, ...]:
    """Rows in the file's order; a last line that is cut off (the job was killed) is left out. Raises ParseError."""
    lines = text.split("\n")
    whole = lines[:-1]  # after the last newline there is nothing, or a line that is not finished
    rows = []
    for number, line in enumerate(whole, 1):
        words = line.split("\t")
        if len(words) < 3 or not words[0].isdigit() or not words[1] or not words[2].isdigit():
            raise ParseError(f"{where}:{number}", line, "rank TAB host TAB local rank")
        rows.append(RankRow(int(words[0]), words[1], int(words[2])))
    return tuple(rows)
