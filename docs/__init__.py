"""The guide: pages, what of them is made from the code, and how it is built."""
