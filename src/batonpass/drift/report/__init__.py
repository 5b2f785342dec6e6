"""A drift report as text, as facts for programs, as a chart, and as one page."""
