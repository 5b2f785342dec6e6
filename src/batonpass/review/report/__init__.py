"""A review for readers: Markdown, one HTML page, SARIF for editors and GitHub."""
