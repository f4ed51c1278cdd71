"""The primary of the table's zones: answers secondaries, tells them of changes, and gives each version its serial."""
