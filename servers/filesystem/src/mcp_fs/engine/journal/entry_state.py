"""The state of an entry, in a form that shows later whether it is still the same."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NEW_FOLDER", "EntryState"]


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry of a folder.

    Attributes:
        kind: `file`, `link`, `folder`, `tree` for a folder that may have anything in it, `made` for one that has to be
            empty, or what else there is.
        inode: its number on its device.
        modified_ns: when its content was, in nanoseconds; 0 for folders.
        fingerprint: a file's hash, a link's target, the digest of what is in a folder; empty when it does not matter.
    """

    kind: str
    device: int = 0
    inode: int = 0
    size: int = 0
    modified_ns: int = 0
    fingerprint: str = ""

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What differs between two files, and between a file before and after a change."""
        return self.device, self.inode, self.size, self.modified_ns

    def is_same_as(self, other: EntryState | None) -> bool:
        """Return whether both tell of the same entry, or of a copy with the same content."""
        if other is None or self.kind != other.kind:
            return False
        if self.identity == other.identity:
            return True
        return bool(self.fingerprint) and (self.size, self.fingerprint) == (other.size, other.fingerprint)


NEW_FOLDER = EntryState("made")
