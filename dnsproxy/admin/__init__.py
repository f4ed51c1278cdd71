"""What a running server shows (pages, listing, publication), and how it is asked."""
