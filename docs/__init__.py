"""The guide: its pages, their parts that are generated from the code, and its build."""
