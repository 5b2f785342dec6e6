"""What a call changed: work trees seen before and after, watched, and told apart where calls overlap."""
