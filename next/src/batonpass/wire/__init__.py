"""Bytes: canonical JSON, digests, salted contents, and the statement that is signed. No meaning, no I/O.

canonical    one encoding for everything that is signed or digested; digests, plain and keyed
contents     what stands beside a receipt: salted, packed, digested
statements   a receipt as an in-toto Statement, there and back
"""
