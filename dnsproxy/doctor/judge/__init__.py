"""From facts to a diagnosis: what the causes are and what to do about them. Pure."""
