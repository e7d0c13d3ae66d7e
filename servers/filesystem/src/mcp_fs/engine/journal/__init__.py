"""Operations, which all changes are made of, and the journal that records them before they happen."""
