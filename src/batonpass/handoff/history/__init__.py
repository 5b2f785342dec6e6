"""What receipts say of earlier offers, calls, holds and runs, read back for whoever goes on."""
