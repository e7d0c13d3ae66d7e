"""Changes files and folders, all or nothing. What a tool does begins in the module that is called after its work.

`writing` has `write_file`, `file_edits` has `edit_file`, `patching` has `edit_files`, `replacing` has `replace_text`,
`folders` has `create_directory`; in `entries`, `batch` has `copy_file` and `move_file`, `deleting` has `delete_file`.

All of them look at what is there with `targets`, and put new contents in place with `atomic_write`.
"""
