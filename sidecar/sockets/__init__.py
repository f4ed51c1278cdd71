"""Sockets that listen, made from endpoints or inherited."""
