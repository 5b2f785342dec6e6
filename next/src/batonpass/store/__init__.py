"""Where receipts are kept: a port with two stores behind it, SQLite and PostgreSQL.

port           what a store does
admission      why a receipt was refused; and the rows in memory, for the verifier
reads          what both stores read in the same words
group_commit   appends that wait at the same time share one transaction
sql            queries by name, out of `.sql` files; `shared.sql` reads the same in both dialects
sqlite/, postgres/
"""
