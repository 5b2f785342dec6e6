"""`batonpass git`, and the repository of the current directory."""
