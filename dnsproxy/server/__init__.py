"""Joins sockets, answers and forward; knows no cluster."""
