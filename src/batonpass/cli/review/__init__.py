"""`batonpass review`, and how a review is told."""
