"""The command line: nouns and verbs over acts and readings. One module a noun, which is loaded when it is used.

main      the nouns, and how a command ends: its exit status, its error
options   what every command takes, and how it opens a ledger
find      ids as people type them
render    lines, rows and JSON on stdout; words about them on stderr
"""
