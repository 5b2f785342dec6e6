"""`batonpass git`, and the repository that we stand in."""
