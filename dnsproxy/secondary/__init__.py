"""Fetching a zone: from the first primary that answers, whole or what changed."""
