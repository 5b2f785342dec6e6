"""The views of the page: each turns records into the values of one template."""
