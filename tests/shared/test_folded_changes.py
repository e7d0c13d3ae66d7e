from mcp_batteries.subscriptions.folded_changes import FoldedChanges, fold_changes
from mcp_batteries.subscriptions.journal import Change, JournalEntry


def test_a_folder_is_told_alike_in_whatever_order_its_files_were_noticed() -> None:
    entries = [
        JournalEntry("tree", Change(f"unpacked/{number % 7}/{number:03}", "created"), at=float(number))
        for number in range(500)
    ]
    for noticed in (entries, entries[::-1], entries[250:] + entries[:250]):
        (folded,) = fold_changes(noticed)
        assert isinstance(folded, FoldedChanges)
        assert (folded.folder, folded.count, folded.at) == ("unpacked", 500, 499.0)
        assert folded.examples == ["0/000", "0/007", "0/014"]
