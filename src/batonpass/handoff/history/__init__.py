"""Reading receipts back: earlier offers, calls, holds and runs, for an attempt or a session that goes on."""
