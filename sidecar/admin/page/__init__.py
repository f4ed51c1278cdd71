"""The pages of the admin port: one look and one script for every program. Pure."""
