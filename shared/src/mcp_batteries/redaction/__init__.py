"""Takes secrets out of text before it is logged or answered: by name, by shape, and those of the process itself.

`text` is the one function of all logs; `names` knows what secrets are called, `tokens` what they look like, and
`own` which ones the settings of this process hold.
"""
