"""Records: what receipts say, read back once. Every answer selects and renders these values; none reads a receipt."""
