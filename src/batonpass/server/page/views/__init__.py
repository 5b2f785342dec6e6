"""The views of the page: each turns records into what one template shows."""
