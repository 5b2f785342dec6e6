"""Which recorded call wrote which line of a file. It knows texts and digests, and reads no ledger.

replay      writes, one after the other, to the lines of the file as it is now
alignment   the lines that an unrecorded change certainly left alone
"""
