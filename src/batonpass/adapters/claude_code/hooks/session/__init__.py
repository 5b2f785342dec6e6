"""One session, event by event: where it stands, and which receipts it becomes."""
