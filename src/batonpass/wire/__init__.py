"""Values to bytes that outlive us, and back."""
